package readers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/topology"
)

// Gate makes the consumers that readers ask for, all but push consumers: the server cannot tell these by the subject of the request,
// and a push consumer sends old messages wherever its maker likes. Which names a reader may use is the server's to say, by the reader's
// permissions. Several gates, in different processes, share the work.
type Gate struct {
	nc       *nats.Conn
	log      zerolog.Logger
	requests *nats.Subscription
}

const (
	createOfNotebook = "CONSUMER.CREATE." + topology.Notebook + "."
	gateQueue        = "reader-gate" // one answer for each request, however many gates there are
	gateTimeout      = 5 * time.Second
)

// Serve keeps a gate open until ctx ends. nc must be of the services' account.
func Serve(ctx context.Context, nc *nats.Conn, log zerolog.Logger) error {
	gate, err := Open(nc, log)
	if err != nil {
		return err
	}
	defer gate.Close()
	<-ctx.Done()
	return nil
}

// Open opens a gate on a connection of the services' account. Without one readers can use the consumers they have, and make none.
func Open(nc *nats.Conn, log zerolog.Logger) (*Gate, error) {
	g := &Gate{nc: nc, log: log.With().Str("component", "reader-gate").Logger()}
	var err error
	// All of the API, though one request is answered: somebody must listen, or the reader would be told that nobody does.
	if g.requests, err = nc.QueueSubscribe(gatePrefix+">", gateQueue, g.create); err != nil {
		return nil, fmt.Errorf("open the gate for readers: %w", err)
	}
	if err := nc.Flush(); err != nil { // not connected at the moment: the connection brings its subscriptions back
		g.log.Warn().Err(err).Msg("the gate for readers opens when the bus is back")
	}
	return g, nil
}

// Close takes no more requests. The connection stays open.
func (g *Gate) Close() {
	// Drained, not dropped: a request that has been given to this gate is answered by no other.
	err := g.requests.Drain()
	if err == nil {
		err = g.nc.FlushTimeout(gateTimeout)
	}
	if err != nil { // the connection is closed, and its subscriptions with it
		g.log.Debug().Err(err).Msg("unsubscribe")
	}
}

func (g *Gate) create(msg *nats.Msg) {
	rest, ok := strings.CutPrefix(msg.Subject, gatePrefix+createOfNotebook) // <name> or <name>.<filter>
	if !ok {
		return
	}
	name, _, _ := strings.Cut(rest, ".")
	request, err := admit(name, msg.Data)
	if err != nil {
		g.log.Warn().Err(err).Str("consumer", name).Msg("reader's consumer refused")
		g.respond(msg, refusal(err))
		return
	}
	answer, err := g.nc.Request(api+createOfNotebook+rest, request, gateTimeout)
	if err != nil { // the reader hears what it would hear from a server that is away: nothing
		g.log.Warn().Err(err).Str("consumer", name).Msg("reader's consumer not made")
		return
	}
	g.respond(msg, answer.Data)
}

func (g *Gate) respond(msg *nats.Msg, data []byte) {
	if err := msg.Respond(data); err != nil {
		g.log.Debug().Err(err).Msg("reader not answered")
	}
}

// Reasons for which a reader gets no consumer.
var (
	errPush   = errors.New("readers may use pull consumers only")
	errWorker = errors.New("this consumer belongs to a worker")
	errName   = errors.New("the consumer's name must be that of the subject")
)

// request is what clients send to make a consumer. Fields of the configuration that the client library does not have, such as those that
// servers use among themselves, are not passed on.
type request struct {
	Stream   string                   `json:"stream_name"`
	Config   jetstream.ConsumerConfig `json:"config"`
	Action   string                   `json:"action"`
	Pedantic bool                     `json:"pedantic,omitempty"`
}

// admit returns the request to pass on: read and written again, so that the server understands it as it was judged.
func admit(name string, data []byte) ([]byte, error) {
	var asked request
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	cfg := asked.Config
	for _, n := range []string{cfg.Name, cfg.Durable} {
		if n != "" && n != name {
			return nil, errName
		}
	}
	if slices.ContainsFunc(topology.Durables(), func(d topology.Durable) bool { return d.Name == name }) {
		return nil, errWorker
	}
	if cfg.DeliverSubject != "" || cfg.DeliverGroup != "" {
		return nil, errPush
	}
	return json.Marshal(asked)
}

// refusal is an answer of the JetStream API that says why.
func refusal(err error) []byte {
	type apiError struct {
		Code        int    `json:"code"`
		ErrCode     int    `json:"err_code"`
		Description string `json:"description"`
	}
	const badRequest = 10003 // the code that the server itself uses for a request it will not have
	data, err := json.Marshal(map[string]any{
		"type":  "io.nats.jetstream.api.v1.consumer_create_response",
		"error": apiError{Code: 403, ErrCode: badRequest, Description: err.Error()},
	})
	if err != nil {
		panic(err) // numbers and strings
	}
	return data
}
