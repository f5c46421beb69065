package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// projectionWait is how long a write waits until reads see it, unless options say otherwise; after that it answers all the same and says so.
const projectionWait = 2 * time.Second

// Keyed is the part of a write's input by which it may be sent again safely.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same request with the same key is done once and answered alike. Ids of new things derive from it."`
}

// request identifies a write: by its key and what is asked of whom.
type request struct {
	key   string // as sent, or made here
	fresh bool   // made here: nothing can have been done under it
	cause string // id of the request: stands as the cause of its events, and finds them again
	seed  string // of the ids of its events: they differ when the body does, which is how another body under the same key shows
}

// identify makes the identity of a write. Without a key of the caller's one is made, so that an answer whose outcome is unknown can name it.
func identify(in Keyed, operation string, body any) (request, error) {
	key := in.IdempotencyKey
	if key == "" {
		key = text.RandomID()
	}
	content, err := json.Marshal(body)
	if err != nil {
		return request{}, fmt.Errorf("fingerprint the request: %w", err)
	}
	cause := text.ID("request", operation, key)
	return request{key: key, fresh: in.IdempotencyKey == "", cause: cause, seed: text.ID("request-body", cause, string(content))}, nil
}

// do appends a command and waits until reads see it. projected is false when that takes too long.
func (s *Server) do(ctx context.Context, thread string, cmd notebook.Command, r request) (projected bool, err error) {
	if err := pointAsked.Hit(ctx); err != nil {
		return false, err
	}
	appended, err := s.Appender.Append(ctx, thread, cmd, notebook.Origin{Cause: r.cause, Seed: r.seed, Timeout: s.options.CommandTimeout})
	var unknown *notebook.Uncertain
	if errors.As(err, &unknown) {
		return false, uncertain(unknown, r.key)
	}
	if fault := pointAppended.Hit(ctx); fault != nil {
		return false, fault
	}
	projected = s.projected(ctx, appended.Seq) // also of what a refused Start changed
	return projected, err
}

func (s *Server) projected(ctx context.Context, seq uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, s.options.ProjectionWait)
	defer cancel()
	return s.Projection.WaitFor(ctx, seq) == nil
}

// once does a command unless the same request has done it before, and refuses another body under the same key.
func (s *Server) once(ctx context.Context, thread string, cmd notebook.Command, r request) (projected bool, err error) {
	if before, err := s.doneBefore(ctx, thread, r); before || err != nil {
		return true, err
	}
	if projected, err = s.do(ctx, thread, cmd, r); err != nil || !projected {
		return projected, err
	}
	_, err = s.doneBefore(ctx, thread, r) // two at once under one key: whose events are stored, if they are not these
	return projected, err
}

// doneBefore says whether events of this request are stored, and waits until the tail has them; it fails when they are of another body.
func (s *Server) doneBefore(ctx context.Context, thread string, r request) (bool, error) {
	if r.fresh {
		return false, nil
	}
	first, err := s.Projection.FirstOfCause(ctx, thread, r.cause)
	if errors.Is(err, projection.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	draft := notebook.Draft{Entity: first.Entity, Run: first.Run, N: first.N, Data: first.Data}
	if first.ID != notebook.EventID(r.seed, thread, draft, 0) {
		return true, problem(http.StatusUnprocessableEntity, "idempotency-key-reused",
			"The Idempotency-Key was used before with another body. What that request did stands, and this one changed nothing; use another key for it.")
	}
	return true, s.Tail.WaitFor(ctx, first.Seq) // the answer is read from the tail, and the projection may be ahead of it
}
