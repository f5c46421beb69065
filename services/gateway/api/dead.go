package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/lost"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// DeadLetter is a message that a worker could not decode.
type DeadLetter struct {
	ID      string    `json:"id"`
	Worker  string    `json:"worker"`
	Reason  string    `json:"reason"`
	Subject string    `json:"subject"`
	Stream  string    `json:"stream"`
	Seq     uint64    `json:"seq" doc:"Where it is in that stream"`
	Data    string    `json:"data" doc:"As text; broken bytes are replaced"`
	At      time.Time `json:"at"`
}

// Retried says what was put back.
type Retried struct {
	ID        string `json:"id"`
	Thread    string `json:"thread"`
	Stage     string `json:"stage" doc:"What is done again: run, distill, judge, questions, brief, coverage, close (the end of a cycle) or autopilot"`
	Run       string `json:"run,omitempty" doc:"The run that was requested anew, if that is what was done"`
	Projected bool   `json:"projected"`
}

// Passed says what a person has let be.
type Passed struct {
	Seq     uint64 `json:"seq" doc:"Of the message in the stream, where it stays"`
	Letters int    `json:"letters" doc:"Dead letters of it that are off the list now"`
}

func (s *Server) deadRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/dead", "list-dead", "List messages that no worker could decode, oldest first"), s.listDead)
	retry := op(http.MethodPost, "/dead/{id}/retry", "retry-dead", "Ask again for the step that the message stood for; money is reserved only when that is a run which came to nothing", 402, 404, 409, 410)
	retry.DefaultStatus = http.StatusAccepted
	operation(s, api, retry, s.retryDead)
	operation(s, api, op(http.MethodPost, "/dead/{id}/pass", "pass-dead",
		"Let the message be: it stays in the stream, and neither its letters nor its bad event are shown any more", 404), s.passDead)
	operation(s, api, op(http.MethodPost, "/bad-events/{seq}/pass", "pass-bad-event",
		"Let a message be that could not be applied, as /readyz lists it: as for a dead letter", 404), s.passBad)
}

func (s *Server) listDead(ctx context.Context, in *Paged) (*Body[List[DeadLetter]], error) {
	after := uint64(0)
	if in.Cursor != "" {
		seq, err := strconv.ParseUint(in.Cursor, 10, 63)
		if err != nil {
			return nil, problem(http.StatusUnprocessableEntity, "invalid-cursor", "The cursor %q is not one of this list. Begin again without it.", in.Cursor)
		}
		after = seq
	}
	items, more, err := dead.List(ctx, s.JS, after, in.Limit)
	if err != nil {
		return nil, err
	}
	list := List[DeadLetter]{Items: []DeadLetter{}}
	for _, item := range items {
		list.Items = append(list.Items, deadView(item))
	}
	if more && len(items) > 0 {
		last := list.Items[len(items)-1].ID
		list.Next = &last
	}
	return body(list), nil
}

func deadView(i dead.Item) DeadLetter {
	return DeadLetter{
		ID: strconv.FormatUint(i.Seq, 10), Worker: i.Durable, Reason: i.Reason, Subject: i.Subject, Stream: i.Stream, Seq: i.StreamSeq,
		Data: strings.ToValidUTF8(string(i.Data), string(utf8.RuneError)), At: i.Time.UTC(),
	}
}

// retryDead asks for the step again that a dead letter stood for. The message itself is not put back into the stream, which would be an append
// without a condition: what the state lacks is asked for by an event, and its outcome is derived from the state. Then the letter is forgotten.
func (s *Server) retryDead(ctx context.Context, in *struct {
	Keyed
	ID string `path:"id"`
}) (*Body[Retried], error) {
	item, err := s.deadLetter(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	thread, cmd, err := s.putBack(ctx, item)
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "retry-dead/"+in.ID, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.once(ctx, thread, cmd, r)
	if err != nil {
		return nil, orPass(err, in.ID)
	}
	if err := s.dealtWith(ctx, item); err != nil {
		return nil, err
	}
	v := Retried{ID: in.ID, Thread: thread, Stage: cmd.Stage, Projected: projected}
	if asked, err := s.Projection.FirstOfCause(ctx, thread, r.cause); err == nil {
		if retried, ok := asked.Data.(event.StageRetried); ok {
			v.Stage = retried.Stage
		}
	}
	s.Tail.View(thread, func(t *notebook.Thread) {
		if v.Stage == event.StageRun && t.Runs[cmd.Run] != nil {
			v.Run = cmd.Run
		}
	})
	return body(v), nil
}

func (s *Server) deadLetter(ctx context.Context, id string) (dead.Item, error) {
	seq, err := strconv.ParseUint(id, 10, 63)
	if err != nil {
		return dead.Item{}, notFound("dead letter", id)
	}
	item, err := dead.Get(ctx, s.JS, seq)
	if errors.Is(err, dead.ErrNotFound) {
		return dead.Item{}, notFound("dead letter", id)
	}
	return item, err
}

// putBack says what a dead letter stood for: by the worker that could not decode it, and by its subject.
func (s *Server) putBack(ctx context.Context, item dead.Item) (thread string, cmd notebook.PutBack, err error) {
	cmd.Stage = lost.StageOf(item.Durable)
	parts, err := topology.Parse(item.Subject)
	if err != nil || cmd.Stage == "" || item.Stream != topology.Notebook {
		return "", cmd, orPass(problem(http.StatusConflict, "not-retryable",
			"The message does not name a step of a thread: its worker is %q, its subject %q.", item.Durable, item.Subject), strconv.FormatUint(item.Seq, 10))
	}
	cmd.Entity = parts.ID
	// Of the message alone, so that the run is reserved once, whoever puts it back and how often.
	cmd.Run = text.ID("run", parts.Thread, "dead", strconv.FormatUint(item.StreamSeq, 10))
	if cmd.Stage != event.StageRun {
		return parts.Thread, cmd, nil
	}
	if parts.Family+"."+parts.Verb == (event.RunRequested{}).Kind() {
		cmd.Question, cmd.Mode = readable(item.Data)
	}
	cmd.Access, err = s.access(ctx, parts.Thread)
	return parts.Thread, cmd, err
}

// readable is what a person asked, as far as the body of a request that is no event still tells it.
func readable(data []byte) (question, mode string) {
	var request struct{ Data struct{ Text, Mode string } }
	_ = json.Unmarshal(data, &request) // a field of another type leaves the others readable
	if text.ValidQuestion(request.Data.Text) != nil {
		return "", ""
	}
	if _, err := ledger.Cost(event.Tabstack, request.Data.Mode); err != nil {
		return request.Data.Text, ""
	}
	return request.Data.Text, request.Data.Mode
}

// orPass adds to why a letter cannot be put back what can be done with it all the same.
func orPass(err error, id string) error {
	other := " To take the message off the list and leave everything as it is, POST " + base + "/dead/" + id + "/pass."
	var told *Problem
	var refusal *notebook.Refusal
	switch {
	case errors.As(err, &told) && told.Status == http.StatusConflict:
		told.Detail += other
	case errors.As(err, &refusal):
		with := *refusal
		with.Text += other
		return &with
	}
	return err
}

// dealtWith forgets a letter that was put back. When it was the message's last one, nobody has to look at its bad event either.
func (s *Server) dealtWith(ctx context.Context, item dead.Item) error {
	if err := dead.Delete(ctx, s.JS, item.Seq); err != nil && !errors.Is(err, dead.ErrNotFound) {
		return err
	}
	left, err := dead.Of(ctx, s.JS, item.Stream, item.StreamSeq)
	if err != nil || len(left) > 0 {
		return err
	}
	return dead.Pass(ctx, s.JS, item.StreamSeq)
}

func (s *Server) passDead(ctx context.Context, in *struct {
	Keyed
	ID string `path:"id"`
}) (*Body[Passed], error) {
	item, err := s.deadLetter(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.pass(ctx, item.Stream, item.StreamSeq)
}

func (s *Server) passBad(ctx context.Context, in *struct {
	Keyed
	Seq string `path:"seq"`
}) (*Body[Passed], error) {
	seq, err := strconv.ParseUint(in.Seq, 10, 63)
	bad := false
	if err == nil {
		bad, err = s.Projection.IsBad(ctx, seq)
	}
	if !bad && (err == nil || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange)) {
		return nil, notFound("bad event", in.Seq)
	}
	if err != nil {
		return nil, err
	}
	return s.pass(ctx, topology.Notebook, seq)
}

// pass lets a message be, for all workers.
func (s *Server) pass(ctx context.Context, stream string, seq uint64) (*Body[Passed], error) {
	if err := dead.Pass(ctx, s.JS, seq); err != nil {
		return nil, err
	}
	letters, err := dead.Of(ctx, s.JS, stream, seq)
	if err != nil {
		return nil, err
	}
	v := Passed{Seq: seq}
	for _, letter := range letters {
		if err := dead.Delete(ctx, s.JS, letter.Seq); err != nil && !errors.Is(err, dead.ErrNotFound) {
			return nil, err
		}
		v.Letters++
	}
	return body(v), nil
}
