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
// permissions, but for what lasts: such a name begins with OwnPrefix, so that no worker of a later version finds its own taken. Nor does it
// make more than MaxNamed of these, or more than MaxConsumers in all. Several gates, in different processes, share the work.
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

const (
	// OwnPrefix begins the name of every reader's consumer that lasts; no worker's name begins so.
	OwnPrefix = "ext-"
	// MaxPassing is the longest inactive threshold of a consumer that does not last. Ordered consumers have 5 minutes.
	MaxPassing = time.Hour
	// MaxNamed is how many consumers with OwnPrefix there may be. Each holds its position for as long as it lasts and is looked at with every event.
	MaxNamed = 100
	// MaxConsumers is how many consumers the notebook may have before readers get no more: the named ones, those of the services (a worker's each, and a
	// tail or two of each process), and the passing ones of readers, which nobody else bounds.
	MaxConsumers = 300
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
	if err == nil {
		err = g.room(name)
	}
	var refused *refused
	if errors.As(err, &refused) {
		g.log.Warn().Err(err).Str("consumer", name).Msg("reader's consumer refused")
		g.respond(msg, refused.answer())
		return
	}
	if err != nil { // as below
		g.log.Warn().Err(err).Str("consumer", name).Msg("reader's consumer not made")
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

// room says whether there is room for one more consumer of this name. One that is there may always be asked for again. Two gates at once may let one more in.
func (g *Gate) room(name string) error {
	// The names are known to the leader; details, which tell whose a consumer is, have to be collected from all servers, also those that are away.
	answer, err := g.nc.Request(consumer+"NAMES."+topology.Notebook, nil, gateTimeout)
	if err != nil {
		return fmt.Errorf("count consumers: %w", err)
	}
	var known struct {
		Error *jetstream.APIError `json:"error"`
		Total int                 `json:"total"`
		Names []string            `json:"consumers"`
	}
	if err := json.Unmarshal(answer.Data, &known); err != nil {
		return fmt.Errorf("count consumers: %w", err)
	}
	if known.Error != nil {
		return fmt.Errorf("count consumers: %w", known.Error)
	}
	return fits(name, known.Names, known.Total)
}

// fits judges a new name by those that there are, or the first of them, and their number.
func fits(name string, names []string, total int) error {
	if slices.Contains(names, name) {
		return nil
	}
	named := 0
	for _, n := range names {
		if strings.HasPrefix(n, OwnPrefix) {
			named++
		}
	}
	switch {
	case strings.HasPrefix(name, OwnPrefix) && named >= MaxNamed:
		return refuse("there are %d consumers whose names begin with %s, and %d is the limit: delete those that nobody uses", named, OwnPrefix, MaxNamed)
	case total >= MaxConsumers:
		return refuse("the notebook has %d consumers, and readers get no more from %d on: delete those that nobody uses", total, MaxConsumers)
	}
	return nil
}

// Reasons for which a reader gets no consumer.
var (
	errPush   = refuse("readers may use pull consumers only")
	errWorker = refuse("this consumer belongs to a worker")
	errName   = refuse("the consumer's name must be that of the subject")
	errOwn    = refuse("the name of a durable consumer, or of one with an inactive threshold over %s, must begin with %s: other names are for workers", MaxPassing, OwnPrefix)
)

// refused is a request that is not passed on, and why.
type refused struct{ text string }

func refuse(format string, args ...any) *refused { return &refused{fmt.Sprintf(format, args...)} }

func (r *refused) Error() string { return r.text }

// answer is what the JetStream API would say. The code is the server's for a request that it will not have, for all reasons: of many other codes, that of
// too many consumers for one, clients show a text of their own instead of ours.
func (r *refused) answer() []byte {
	type apiError struct {
		Code        int    `json:"code"`
		ErrCode     int    `json:"err_code"`
		Description string `json:"description"`
	}
	const badRequest = 10003
	data, err := json.Marshal(map[string]any{
		"type":  "io.nats.jetstream.api.v1.consumer_create_response",
		"error": apiError{Code: 403, ErrCode: badRequest, Description: r.text},
	})
	if err != nil {
		panic(err) // numbers and strings
	}
	return data
}

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
		return nil, refuse("invalid JSON: %v", err)
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
	if lasts := cfg.Durable != "" || cfg.InactiveThreshold > MaxPassing; lasts && !strings.HasPrefix(name, OwnPrefix) {
		return nil, errOwn
	}
	return json.Marshal(asked)
}
