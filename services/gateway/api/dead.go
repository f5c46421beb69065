package api

import (
	"context"
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
	"github.com/factstream/factstream/shared/notebook"
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
	Stage     string `json:"stage"`
	Projected bool   `json:"projected"`
}

func (s *Server) deadRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/dead", "list-dead", "List messages that no worker could decode, oldest first"), s.listDead)
	retry := op(http.MethodPost, "/dead/{id}/retry", "retry-dead", "Ask again for the step that the message stood for", 404, 409, 410)
	retry.DefaultStatus = http.StatusAccepted
	operation(s, api, retry, s.retryDead)
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
// without a condition: the step is asked for by stage.retried, and its outcome is derived from the state. Then the letter is forgotten.
func (s *Server) retryDead(ctx context.Context, in *struct {
	Keyed
	ID string `path:"id"`
}) (*Body[Retried], error) {
	seq, err := strconv.ParseUint(in.ID, 10, 63)
	if err != nil {
		return nil, notFound("dead letter", in.ID)
	}
	item, err := dead.Get(ctx, s.JS, seq)
	if err != nil {
		return nil, err
	}
	stage, parts, err := stepOf(item)
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "retry-dead/"+in.ID, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.once(ctx, parts.Thread, notebook.RetryStage{Stage: stage, Entity: parts.ID, Reason: "put back from the dead letters"}, r)
	if err != nil {
		return nil, err
	}
	if err := dead.Delete(ctx, s.JS, seq); err != nil && !errors.Is(err, dead.ErrNotFound) {
		return nil, err
	}
	return body(Retried{ID: in.ID, Thread: parts.Thread, Stage: stage, Projected: projected}), nil
}

// stepOf names the step that a dead letter stood for, by the worker that could not decode it.
func stepOf(item dead.Item) (stage string, parts topology.Parts, err error) {
	switch item.Durable {
	case topology.Distil:
		stage = event.StageDistill
	case topology.Judge:
		stage = event.StageJudge
	default: // a run is asked for anew, and what ends a cycle is retried by its own stages
		return "", parts, problem(http.StatusConflict, "not-retryable",
			"The message was for %s: it cannot be put back by itself. Ask for a new run, or retry the stages of the cycle.", item.Durable)
	}
	parts, err = topology.Parse(item.Subject)
	if err != nil {
		return "", parts, problem(http.StatusConflict, "not-retryable", "The message does not name a run: its subject is %q.", item.Subject)
	}
	return stage, parts, nil
}
