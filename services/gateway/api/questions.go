package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// AskQuestion is the body of POST /threads/{t}/questions.
type AskQuestion struct {
	Text string `json:"text" doc:"1 to 10,000 code points"`
}

// MoveQuestion is the body of PATCH /questions/{q}.
type MoveQuestion struct {
	Position int `json:"position" doc:"0 is asked next"`
}

// QuestionPath is the part of an input that names a question.
type QuestionPath struct {
	Question string `path:"question"`
}

func (s *Server) questionRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/threads/{thread}/questions", "list-questions", "List questions: those in line first", 404, 410), s.listQuestions)
	ask := op(http.MethodPost, "/threads/{thread}/questions", "ask-question", "Put a question first in line", 404, 409, 410)
	ask.DefaultStatus = http.StatusCreated
	operation(s, api, ask, s.askQuestion)
	operation(s, api, op(http.MethodPatch, "/questions/{question}", "move-question", "Give a pending question another place", 404, 409), s.moveQuestion)
	operation(s, api, op(http.MethodDelete, "/questions/{question}", "dismiss-question", "Take a question out of the line", 404), s.dismissQuestion)
}

func (s *Server) listQuestions(_ context.Context, in *struct {
	ThreadPath
	Paged
}) (*Body[List[Question]], error) {
	var views []Question
	if err := s.existing(in.Thread, func(t *notebook.Thread) { views = questionViews(t) }); err != nil {
		return nil, err
	}
	list, err := page(slices.Values(views), func(q Question) string { return q.ID }, all[Question], func(q Question) Question { return q }, in.Paged)
	return body(list), err
}

func (s *Server) askQuestion(ctx context.Context, in *struct {
	ThreadPath
	Keyed
	Body AskQuestion
}) (*Body[Question], error) {
	if !text.ValidToken(in.Thread) {
		return nil, notFound("thread", in.Thread)
	}
	r, err := identify(in.Keyed, "ask-question/"+in.Thread, in.Body)
	if err != nil {
		return nil, err
	}
	question := text.ID("question", in.Thread, "request", r.key)
	projected, err := s.once(ctx, in.Thread, notebook.AskQuestion{ID: question, Text: strings.TrimSpace(in.Body.Text)}, r)
	if err != nil {
		return nil, err
	}
	return s.questionAnswer(in.Thread, question, projected), nil
}

func (s *Server) moveQuestion(ctx context.Context, in *struct {
	QuestionPath
	Keyed
	Body MoveQuestion
}) (*Body[Question], error) {
	return s.questionCommand(ctx, in.Keyed, "move-question", in.Question, notebook.MoveQuestion{ID: in.Question, Position: in.Body.Position}, in.Body)
}

func (s *Server) dismissQuestion(ctx context.Context, in *struct {
	QuestionPath
	Keyed
}) (*Body[Question], error) {
	return s.questionCommand(ctx, in.Keyed, "dismiss-question", in.Question, notebook.DismissQuestion{ID: in.Question}, nil)
}

func (s *Server) questionCommand(ctx context.Context, key Keyed, operation, question string, cmd notebook.Command, content any) (*Body[Question], error) {
	if !text.ValidToken(question) {
		return nil, notFound("question", question)
	}
	thread, err := s.Projection.ThreadOf(ctx, projection.Questions, question)
	if err != nil {
		return nil, err
	}
	r, err := identify(key, operation+"/"+question, content)
	if err != nil {
		return nil, err
	}
	projected, err := s.once(ctx, thread, cmd, r)
	if err != nil {
		return nil, err
	}
	return s.questionAnswer(thread, question, projected), nil
}

// questionAnswer is a question after a write, with its place in line.
func (s *Server) questionAnswer(thread, question string, projected bool) *Body[Question] {
	var v Question
	s.Tail.View(thread, func(t *notebook.Thread) {
		for _, q := range questionViews(t) {
			if q.ID == question {
				v = q
			}
		}
	})
	v.Projected = &projected
	return body(v)
}
