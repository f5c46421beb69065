package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/sse"
)

// up is a whole notebook: `factstream up` on a data directory.
type up struct {
	*process
	gateway
	ready time.Duration // from its start until /readyz was 200
	data  string
	bus   string // address of the NATS server, without user and password
}

// up starts a notebook and waits until it is ready.
func (r *run) up(ctx context.Context, data string) (*up, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	httpPort, natsPort := ports[0], ports[1]
	u := &up{gateway: gateway{"http://127.0.0.1:" + httpPort}, data: data, bus: "nats://127.0.0.1:" + natsPort}
	u.process, err = r.spawn(ctx, "factstream", []string{"FACTSTREAM_DATA=" + data, "FACTSTREAM_HTTP=127.0.0.1:" + httpPort, "NATS_PORT=" + natsPort}, "up")
	if err != nil {
		return nil, err
	}
	if err := u.until(ctx, "the notebook is ready", 5*time.Millisecond, u.isReady); err != nil {
		u.stop()
		return nil, err
	}
	u.ready = time.Since(u.began)
	return u, nil
}

// dial connects to the bus of a notebook as a service does.
func (u *up) dial(ctx context.Context) (*nats.Conn, jetstream.JetStream, error) {
	return dial(ctx, u.bus, u.data)
}

func dial(ctx context.Context, address, data string) (*nats.Conn, jetstream.JetStream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	return connect.Dial(ctx, connect.Config{URL: address, Name: "bench", CredentialsFile: embedded.CredentialsFile(data), Logger: zerolog.Nop()})
}

// natsURL is the address with the user and password of a service.
func natsURL(address, data string) (string, error) {
	user, password, err := connect.ReadCredentials(embedded.CredentialsFile(data))
	if err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(user, password)
	return u.String(), nil
}

// gateway is the way in, asked over HTTP as any client asks it.
type gateway struct{ url string }

func (g gateway) isReady(ctx context.Context) bool {
	_, err := g.readiness(ctx)
	return err == nil
}

// readiness returns the position of notebook.db; an error unless /readyz is 200.
func (g gateway) readiness(ctx context.Context) (position uint64, err error) {
	var answer struct {
		Projection struct{ Position uint64 }
	}
	err = g.ask(ctx, http.MethodGet, "/readyz", nil, &answer)
	return answer.Projection.Position, err
}

// create opens a thread that a person would start by hand.
func (g gateway) create(ctx context.Context) (thread string, err error) {
	var answer struct{ ID string }
	err = g.ask(ctx, http.MethodPost, "/api/v1/threads", map[string]any{"question": "How close are solid-state batteries to mass production?", "auto": false}, &answer)
	return answer.ID, err
}

var errUnfit = errors.New("what came of the run is not what was to be measured")

// replay runs a recorded research run and returns how long it took from the request until the gateway told that the thread is settled, and the
// events of the thread from the run's request to that one.
func (g gateway) replay(ctx context.Context, thread, mode string) (took time.Duration, events uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	watched, err := g.send(ctx, http.MethodGet, "/api/v1/events?thread="+thread, nil)
	if err != nil {
		return 0, 0, err
	}
	defer watched.Body.Close() //nolint:errcheck // only read
	began := time.Now()
	if err := g.ask(ctx, http.MethodPost, "/api/v1/threads/"+thread+"/runs", map[string]string{"mode": mode}, nil); err != nil {
		return 0, 0, err
	}
	seen, err := untilSettled(watched.Body)
	took = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if facts := seen[event.TypeOf(event.FactsDistilled{})]; facts != 1 {
		return 0, 0, fmt.Errorf("%w: facts were distilled %d times", errUnfit, facts)
	}
	for _, n := range seen {
		events += uint64(n)
	}
	return took, events, nil
}

// untilSettled reads events up to thread.settled and counts them by type.
func untilSettled(body io.Reader) (map[string]int, error) {
	seen := map[string]int{}
	var decoder sse.Decoder
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		events, decodeErr := decoder.Feed(piece[:n])
		if decodeErr != nil {
			return nil, decodeErr
		}
		for _, e := range events {
			seen[e.Name]++
			if e.Name == event.TypeOf(event.ThreadSettled{}) {
				return seen, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read the events of the thread: %w", err)
		}
	}
}

// ask sends a request and decodes the answer, unless out is nil.
func (g gateway) ask(ctx context.Context, method, path string, in, out any) error {
	response, err := g.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if out == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(out)
}

func (g gateway) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, g.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close() //nolint:errcheck // only read
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, said)
	}
	return response, nil
}

// eventsOf reads the first events of a thread from the stream, as many as are asked for.
func eventsOf(ctx context.Context, js jetstream.JetStream, thread string, count int) ([]notebook.Message, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	reading, enough := context.WithCancel(ctx)
	defer enough()
	var all []notebook.Message
	err := projector.New(js, projector.Config{
		Stream: topology.Notebook, Filter: topology.ThreadFilter(thread), Logger: zerolog.Nop(),
		Handler: func(_ context.Context, messages []projector.Message) error {
			if all = append(all, messages...); len(all) >= count {
				enough()
			}
			return nil
		},
	}).Run(reading)
	if err == nil && len(all) < count {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read the events of thread %s: %w", thread, err)
	}
	return all[:count], nil
}
