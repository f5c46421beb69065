package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/trail"
)

// TrailEvent is one event of a provider as it came.
type TrailEvent = trail.Event

// Headers of a trail that is answered as a list.
const (
	headerAttempt  = "Factstream-Attempt"        // the newest, whose events these are; 0 before the first
	headerComplete = "Factstream-Trail-Complete" // false while the attempt goes on, or when neither the trail nor the raw answer has all events
)

const (
	trailPage = 256
	// trailLook is how often a trail that is watched is looked at, should word of an event have come before the event could be read.
	trailLook = 500 * time.Millisecond
)

func (s *Server) getTrail(ctx context.Context, in *struct {
	RunPath
	Accept      string `header:"Accept"`
	LastEventID string `header:"Last-Event-ID" doc:"Go on behind this event"`
}) (*huma.StreamResponse, error) {
	var deleted bool
	var attempt, want int
	thread, err := s.withRun(ctx, in.Run, func(_ *notebook.Thread, r *notebook.Run) {
		deleted, attempt = r.Deleted, len(r.Attempts)
		if r.Completed != nil {
			want = r.Completed.Events
		}
	})
	switch {
	case err != nil:
		return nil, err
	case deleted:
		return nil, problem(http.StatusGone, "run-deleted", "The receipt of this run was deleted, its trail with it. Its facts are kept.")
	}
	if strings.Contains(in.Accept, eventStream) {
		seen, err := parseTrailID(in.LastEventID)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			stream, live, cancel := s.openSSE(hc)
			defer cancel()
			if live.Err() != nil {
				return
			}
			if err := s.sendTrail(live, stream, thread, in.Run, seen); err != nil && live.Err() == nil {
				s.Log.Debug().Err(err).Str("run", in.Run).Msg("a trail ended")
			}
		}}, nil
	}
	items := []TrailEvent{}
	if attempt > 0 {
		if _, err := s.readTrail(ctx, topology.TrailSubject(thread, in.Run, attempt), 0, func(e TrailEvent, _ uint64) error {
			items = append(items, e)
			return nil
		}); err != nil {
			return nil, err
		}
		if !wholeTrail(items) || len(items) < max(want, 1) {
			if kept := s.keptTrail(ctx, thread, in.Run, attempt); len(kept) > len(items) {
				items = kept
			}
		}
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		hc.SetHeader(headerAttempt, strconv.Itoa(attempt))
		hc.SetHeader(headerComplete, strconv.FormatBool(wholeTrail(items) && len(items) >= want))
		if err := json.NewEncoder(hc.BodyWriter()).Encode(items); err != nil {
			s.Log.Debug().Err(err).Msg("an answer was not taken")
		}
	}}, nil
}

// keptTrail reads the events of an ended attempt from its raw answer: the stream of trails forgets after a day, and what a busy bus could not take never was in
// it. It gives none when there is no raw answer, and of one that was cut what can be read.
func (s *Server) keptTrail(ctx context.Context, thread, run string, attempt int) []TrailEvent {
	var began time.Time
	var ref artifact.Ref
	s.Projection.View(thread, func(t *notebook.Thread) {
		r := t.Runs[run]
		if r == nil || attempt > len(r.Attempts) {
			return
		}
		began = r.Attempts[attempt-1].Started
		if c := r.Completed; c != nil && c.Attempt == attempt {
			ref = artifact.Ref{Ref: c.Raw.Ref, SHA256: c.Raw.SHA256, Size: c.Raw.Size}
		}
	})
	if ref.Ref == "" { // no event refers to the answer of an attempt that ended badly
		named, err := s.Artifacts.Named(ctx, thread, artifact.AttemptName(run, attempt))
		if err != nil {
			return nil
		}
		ref = named
	}
	raw, err := s.Artifacts.Reader(ctx, ref)
	if errors.Is(err, artifact.ErrMissing) { // named, and not kept: see artifact.Store.Name
		return nil
	}
	if err != nil {
		s.Log.Warn().Err(err).Str("run", run).Msg("a raw answer cannot be read")
		return nil
	}
	defer raw.Close() //nolint:errcheck // only read
	events, err := trail.Decode(raw, began)
	if err != nil {
		s.Log.Debug().Err(err).Str("run", run).Msg("a raw answer ends early")
	}
	return events
}

// wholeTrail says that the events are numbered without a gap from the first.
func wholeTrail(items []TrailEvent) bool {
	for i, e := range items {
		if e.Seq != items[0].Seq+i {
			return false
		}
	}
	return len(items) == 0 || items[0].Seq <= 1
}

// trailID names an event of a trail for Last-Event-ID: the attempt and its sequence in the stream of trails.
type trailID struct {
	attempt int
	seq     uint64
}

func (i trailID) String() string {
	return strconv.Itoa(i.attempt) + "." + strconv.FormatUint(i.seq, 10)
}

func parseTrailID(s string) (trailID, error) {
	if s == "" {
		return trailID{}, nil
	}
	attempt, seq, _ := strings.Cut(s, ".")
	n, err1 := strconv.Atoi(attempt)
	q, err2 := strconv.ParseUint(seq, 10, 63)
	if err1 != nil || err2 != nil || n < 0 {
		return trailID{}, problem(http.StatusUnprocessableEntity, "invalid-event-id", "Last-Event-ID is %q; it must be the id of an event of this trail. Leave it out to begin at the first.", s)
	}
	return trailID{n, q}, nil
}

// sendTrail streams the events of the newest attempt, goes over to the next attempt when one is started, and says end when the run has ended.
func (s *Server) sendTrail(ctx context.Context, to *sse, thread, run string, at trailID) error {
	if err := to.comment("trail of run " + run); err != nil {
		return err
	}
	arrived, stop, err := s.trailArrivals(thread, run)
	if err != nil {
		return err
	}
	defer stop()
	comments, looks := time.NewTicker(s.options.CommentEvery), time.NewTicker(trailLook)
	defer comments.Stop()
	defer looks.Stop()
	for {
		changed, ended := s.Projection.Changed(), s.terminal(thread, run)
		if attempt := s.attemptOf(thread, run); attempt != at.attempt {
			at = trailID{attempt: attempt}
			if err := to.event("", "attempt", []byte(`{"attempt":`+strconv.Itoa(attempt)+`}`)); err != nil {
				return err
			}
		}
		if at.attempt > 0 {
			at.seq, err = s.readTrail(ctx, topology.TrailSubject(thread, run, at.attempt), at.seq, func(e TrailEvent, seq uint64) error {
				body, err := json.Marshal(e)
				if err != nil {
					return err
				}
				return to.event(trailID{at.attempt, seq}.String(), "trail", body)
			})
			if err != nil {
				return err
			}
		}
		if ended {
			if at.attempt > 0 && at.seq == 0 { // the stream of trails has forgotten it
				if err := s.sendKept(ctx, to, thread, run, at.attempt); err != nil {
					return err
				}
			}
			return to.event("", "end", []byte(`{}`))
		}
		select {
		case <-to.ended:
			return nil
		case <-arrived:
		case <-looks.C:
		case <-changed:
		case <-comments.C:
			if err := to.comment("still here"); err != nil {
				return err
			}
		}
	}
}

// sendKept sends an ended attempt from its raw answer. Its events have no ids: it is always sent whole.
func (s *Server) sendKept(ctx context.Context, to *sse, thread, run string, attempt int) error {
	for _, e := range s.keptTrail(ctx, thread, run, attempt) {
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := to.event("", "trail", body); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) attemptOf(thread, run string) (attempt int) {
	s.Projection.View(thread, func(t *notebook.Thread) {
		if r := t.Runs[run]; r != nil {
			attempt = len(r.Attempts)
		}
	})
	return attempt
}

// trailArrivals signals when something is said on a run's trail.
func (s *Server) trailArrivals(thread, run string) (arrived <-chan struct{}, stop func(), err error) {
	signal := make(chan struct{}, 1)
	subscription, err := s.NC.Subscribe(topology.RunTrail(thread, run), func(*nats.Msg) {
		select {
		case signal <- struct{}{}:
		default: // it will be looked at
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return signal, func() { _ = subscription.Unsubscribe() }, nil
}

// readTrail gives the events of one attempt behind a sequence of the stream of trails, in order, and the sequence of the last.
func (s *Server) readTrail(ctx context.Context, subject string, after uint64, do func(TrailEvent, uint64) error) (uint64, error) {
	for {
		messages, err := jetstreamext.GetBatch(ctx, s.JS, topology.Trail, trailPage, jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchSeq(after+1))
		if err != nil {
			return after, err
		}
		n := 0
		for m, err := range messages {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				break
			}
			if err != nil {
				return after, err
			}
			n++
			after = m.Sequence
			if err := do(trailEvent(m), m.Sequence); err != nil {
				return after, err
			}
		}
		if n < trailPage {
			return after, nil
		}
	}
}

// trailEvent reads a message; one that is none of ours is shown raw.
func trailEvent(m *jetstream.RawStreamMsg) TrailEvent {
	var e TrailEvent
	if err := json.Unmarshal(m.Data, &e); err != nil || len(e.Data) == 0 {
		raw, err := json.Marshal(map[string]string{"raw": strings.ToValidUTF8(string(m.Data), "\uFFFD")})
		if err != nil {
			raw = []byte(`{}`)
		}
		e = TrailEvent{Name: "unknown", At: m.Time.UTC(), Data: raw}
	}
	return e
}
