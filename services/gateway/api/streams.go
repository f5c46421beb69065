package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// Times of a stream of events.
const (
	commentEvery  = 15 * time.Second // unless options say otherwise
	writeDeadline = 30 * time.Second // who does not read for so long is cut off, and can resume
	eventPage     = 256
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

func (s *Server) streamRoutes(api huma.API) {
	events := op(http.MethodGet, "/events", "watch-events", "Events of the notebook as they come (SSE); Last-Event-ID resumes", 404, 410)
	events.Responses = map[string]*huma.Response{"200": inText(eventStream,
		"One SSE event per event of the notebook: id is its stream sequence, event its type, data its body. The event gap says that what lies between two ids cannot be told.")}
	operation(s, api, events, s.watchEvents)
	trail := op(http.MethodGet, "/runs/{run}/trail", "get-trail", "What the provider said, as a list or live (Accept: text/event-stream)", 404, 410)
	text := func(description string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: "string"}}
	}
	listOrLive := holding[[]TrailEvent](api.OpenAPI().Components.Schemas, "application/json", "The events of the newest attempt")
	listOrLive.Content[eventStream] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	listOrLive.Headers = map[string]*huma.Header{
		headerAttempt:  text("The attempt whose events these are; 0 before the first"),
		headerComplete: text("false when events are missing: trails are kept for a day"),
	}
	trail.Responses = map[string]*huma.Response{"200": listOrLive}
	operation(s, api, trail, s.getTrail)
}

// sse is an open stream to one client.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ended   <-chan struct{} // the client or the server goes
}

// openSSE begins a stream; it ends with the client, or when the server stops. To HEAD it has ended when it begins.
func (s *Server) openSSE(ctx huma.Context) (*sse, context.Context, context.CancelFunc) {
	r, w := humago.Unwrap(ctx)
	live, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-live.Done():
		}
	}()
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		cancel()
	}
	return &sse{w: w, control: http.NewResponseController(w), ended: live.Done()}, live, cancel
}

// event sends one event.
func (c *sse) event(id, name string, data []byte) error {
	if err := c.put(frame(id, name, data)); err != nil {
		return err
	}
	return c.control.Flush()
}

func (c *sse) comment(text string) error {
	if err := c.put([]byte(": " + text + "\n\n")); err != nil {
		return err
	}
	return c.control.Flush()
}

// put writes what may stay here until the next Flush.
func (c *sse) put(text []byte) error {
	if err := c.control.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := c.w.Write(text)
	return err
}

// frame is one event as it is sent. A line break in data, which JSON as encoded here has not but others' may, begins another line of data: a line of SSE ends
// with any of LF, CR and both, and to JSON they are alike.
func frame(id, name string, data []byte) []byte {
	b := make([]byte, 0, len("id: \nevent: \ndata: \n\n")+len(id)+len(name)+len(data))
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	b = fmt.Appendf(b, "event: %s\n", name)
	if bytes.IndexByte(data, '\r') >= 0 {
		data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// watchEvents streams the notebook's events: from behind Last-Event-ID, or from now on.
func (s *Server) watchEvents(ctx context.Context, in *struct {
	Thread      string `query:"thread" doc:"Only this thread's"`
	LastEventID string `header:"Last-Event-ID" doc:"Go on behind this sequence; 0 begins with the first event"`
	After       string `query:"after" doc:"As Last-Event-ID, for who cannot send headers"`
}) (*huma.StreamResponse, error) {
	last, from := s.Projection.Seen(), in.LastEventID
	if from == "" {
		from = in.After
	}
	if in.Thread != "" && from == "" { // resuming, a thread that is gone ends with its tombstone
		if err := s.existing(in.Thread, func(*notebook.Thread) {}); err != nil {
			return nil, err
		}
	}
	gap := ""
	if from != "" {
		after, err := strconv.ParseUint(from, 10, 63)
		switch {
		case err != nil:
			return nil, problem(http.StatusUnprocessableEntity, "invalid-event-id", "Last-Event-ID is %q; it must be the id of an event of this stream. Leave it out to hear what comes from now on.", from)
		case after > last && s.comes(ctx, after): // it was seen before notebook.db was lost or made again
			last = after
		case after > last: // of another notebook, or of this one before it was restored
			gap = fmt.Sprintf("The stream ends at %d, before the event %d that you saw. Read what you need anew.", last, after)
		case after > 0 && after < s.Projection.Begins():
			gap = fmt.Sprintf("The notebook was restored since and begins at %d now; the event %d that you saw is of its earlier stream. Read what you need anew.", s.Projection.Begins(), after)
		default:
			last = after
		}
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		stream, live, cancel := s.openSSE(ctx)
		defer cancel()
		if live.Err() != nil {
			return
		}
		if err := s.sendEvents(live, stream, in.Thread, last, gap); err != nil && live.Err() == nil {
			s.Log.Debug().Err(err).Msg("a stream of events ended")
		}
	}}, nil
}

// comes says whether the stream has the sequence, so that the projection will have it, too.
func (s *Server) comes(ctx context.Context, seq uint64) bool {
	end, err := s.Projection.End(ctx)
	return err == nil && seq <= end && seq >= s.Projection.Begins()
}

func (s *Server) sendEvents(ctx context.Context, to *sse, thread string, last uint64, gap string) error {
	if err := to.comment("from " + strconv.FormatUint(last, 10)); err != nil {
		return err
	}
	if gap != "" {
		body, err := json.Marshal(map[string]any{"position": last, "detail": gap})
		if err != nil {
			return err
		}
		if err := to.event(strconv.FormatUint(last, 10), "gap", body); err != nil {
			return err
		}
	}
	comments := time.NewTicker(s.options.CommentEvery)
	defer comments.Stop()
	for {
		changed := s.Projection.Changed() // taken before the look, so that nothing is missed between
		events, upTo, err := s.Projection.Events(ctx, thread, last, eventPage)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := to.put(frame(strconv.FormatUint(e.Seq, 10), nameOf(e.Type), e.Body)); err != nil {
				return err
			}
			last = e.Seq
		}
		if len(events) == eventPage {
			continue
		}
		if len(events) > 0 {
			if err := to.control.Flush(); err != nil {
				return err
			}
		}
		last = max(last, upTo) // what others did is behind this watcher, too
		select {
		case <-to.ended:
			return nil
		case <-changed:
		case <-comments.C:
			if err := to.comment("still here"); err != nil {
				return err
			}
		}
	}
}

// nameOf makes a type fit for the line that names an SSE event: others' events may have any.
func nameOf(typ string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, typ)
	if name == "" {
		return "message"
	}
	return name
}

// terminal says whether a run has ended, in the projection.
func (s *Server) terminal(thread, run string) bool {
	ended := true
	s.Projection.View(thread, func(t *notebook.Thread) {
		if r := t.Runs[run]; r != nil {
			ended = r.Awaits() != event.StageRun
		}
	})
	return ended
}
