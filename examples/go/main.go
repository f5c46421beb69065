// Command subscriber prints the notebook's events as they are stored. It is an example: it needs nothing of Factstream but the
// read-only credentials, and nothing but the NATS client beside the standard library.
//
//	go run . --data ../../data                     everything from the start, then live
//	go run . --since 1h                            from an hour ago (or from a time: 2026-01-31T12:00:00Z)
//	go run . --new                                 live only
//	go run . --thread ID                           one thread
//	go run . --cursor FILE                         goes on where it stopped; the position is in the file
//	go run . --name ext-my-program                 goes on where it stopped; the position is on the server
//	go run . --once                                ends when it has read what was stored so far
//
// Without --data it is the data directory that FACTSTREAM_DATA names, as for Factstream itself, else ./data.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	stream = "NOTEBOOK"
	// inbox is the only subject on which the read-only user may listen.
	inbox = "_INBOX_reader"
)

// event is the body of every message. Data depends on the type; there is a JSON Schema for each in shared/event.
type event struct {
	ID     string          `json:"id"`
	Type   string          `json:"type"` // factstream.run.completed.v1
	Time   time.Time       `json:"time"`
	Thread string          `json:"thread"`
	Run    string          `json:"run"`
	Cause  string          `json:"cause"` // id of the event that led to it
	N      int             `json:"n"`
	Data   json.RawMessage `json:"data"`
}

type options struct {
	url, credentials string
	since            string
	fresh, once      bool
	thread           string
	cursor, name     string
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		err = subscribe(ctx, o, os.Stdout)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "subscriber:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("subscriber", flag.ContinueOnError)
	data := flags.String("data", cmp.Or(os.Getenv("FACTSTREAM_DATA"), "data"), "Factstream's data directory (FACTSTREAM_DATA), for the address and the credentials")
	flags.StringVar(&o.url, "url", "", "the NATS server, instead of the one of the data directory")
	flags.StringVar(&o.credentials, "credentials", "", "a file with user:password, instead of the one of the data directory")
	flags.StringVar(&o.since, "since", "", "begin at this time, or this long ago")
	flags.BoolVar(&o.fresh, "new", false, "begin with what comes from now on")
	flags.StringVar(&o.thread, "thread", "", "only this thread")
	flags.StringVar(&o.cursor, "cursor", "", "keep the position in this file")
	flags.StringVar(&o.name, "name", "", "keep the position on the server, under this name, which begins with ext-")
	flags.BoolVar(&o.once, "once", false, "end when everything stored so far has been read")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.cursor != "" && o.name != "" {
		return o, errors.New("give --cursor or --name, not both")
	}
	if o.credentials == "" {
		o.credentials = filepath.Join(*data, "credentials", "reader")
	}
	if o.url == "" {
		address, err := os.ReadFile(filepath.Join(*data, "address"))
		if err != nil {
			return o, fmt.Errorf("no Factstream runs on %s: %w; start it (factstream up), or give --data or --url", *data, err)
		}
		o.url = strings.TrimSpace(string(address))
	}
	return o, nil
}

// subscribe prints one line for each event until ctx ends, or, with once, until there is no more.
func subscribe(ctx context.Context, o options, out io.Writer) error {
	js, closeBus, err := connect(o)
	if err != nil {
		return err
	}
	defer closeBus()
	place := position{path: o.cursor}
	if err := place.load(ctx, js); err != nil {
		return err
	}
	consumer, err := consume(ctx, js, o, place.Sequence)
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask for the consumer: %w", err)
	}
	if o.once && info.NumPending == 0 && info.NumAckPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	defer messages.Stop()
	context.AfterFunc(ctx, messages.Stop)

	known := map[string]bool{} // the same event may come again: after a crash between the two steps below, or after a restore
	for {
		msg, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		var e event
		if err := json.Unmarshal(msg.Data(), &e); err != nil {
			fmt.Fprintf(out, "%d not an event: %s\n", meta.Sequence.Stream, msg.Subject())
		} else if e.ID == "" || !known[e.ID] { // events of others (ext.*) may have no id
			known[e.ID] = true
			fmt.Fprintf(out, "%d %s %s %s\n", meta.Sequence.Stream, e.Time.Format(time.RFC3339), msg.Subject(), e.Type)
		}
		// First the work, then the position: what is lost in a crash between the two comes again.
		place.Sequence = meta.Sequence.Stream
		if o.name != "" {
			err = msg.DoubleAck(ctx)
		} else {
			err = place.save()
		}
		if err != nil {
			return fmt.Errorf("keep the position: %w", err)
		}
		if o.once && meta.NumPending == 0 {
			return nil
		}
	}
}

func connect(o options) (jetstream.JetStream, func(), error) {
	text, err := os.ReadFile(o.credentials)
	if err != nil {
		return nil, nil, fmt.Errorf("read the credentials: %w", err)
	}
	user, password, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !ok {
		return nil, nil, fmt.Errorf("%s does not hold user:password", o.credentials)
	}
	nc, err := nats.Connect(o.url, nats.UserInfo(user, password), nats.CustomInboxPrefix(inbox), nats.MaxReconnects(-1), nats.Name("example subscriber"))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", o.url, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return js, nc.Close, nil
}

// consume makes the consumer that the options ask for: an own, named one that the server remembers, or an ordered one, which the library
// makes again by itself after a failure and which needs no acknowledgements.
func consume(ctx context.Context, js jetstream.JetStream, o options, after uint64) (jetstream.Consumer, error) {
	var filters []string
	if o.thread != "" {
		filters = []string{"*.*." + o.thread + ".>"}
	}
	policy, from, err := start(o, after)
	if err != nil {
		return nil, err
	}
	if o.name == "" {
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: policy, OptStartTime: from}
		if policy == jetstream.DeliverByStartSequencePolicy {
			cfg.OptStartSeq = after + 1
		}
		return js.OrderedConsumer(ctx, stream, cfg)
	}
	// Where to begin is said once: a consumer that is there keeps its position, and a change of its beginning is refused.
	if consumer, err := js.Consumer(ctx, stream, o.name); err == nil {
		return consumer, nil
	} else if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	return js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: o.name, FilterSubjects: filters, DeliverPolicy: policy, OptStartTime: from,
		AckPolicy:         jetstream.AckExplicitPolicy,
		MaxAckPending:     1,                   // one at a time: else what was not acknowledged comes after what follows it
		InactiveThreshold: 30 * 24 * time.Hour, // the server forgets a program that has not come for a month
	})
}

func start(o options, after uint64) (jetstream.DeliverPolicy, *time.Time, error) {
	switch {
	case after > 0:
		return jetstream.DeliverByStartSequencePolicy, nil, nil
	case o.fresh:
		return jetstream.DeliverNewPolicy, nil, nil
	case o.since == "":
		return jetstream.DeliverAllPolicy, nil, nil
	}
	at, err := time.Parse(time.RFC3339, o.since)
	if err != nil {
		ago, err := time.ParseDuration(o.since)
		if err != nil {
			return 0, nil, fmt.Errorf("--since %q is neither a time like 2026-01-31T12:00:00Z nor a duration like 90m", o.since)
		}
		at = time.Now().Add(-ago)
	}
	return jetstream.DeliverByStartTimePolicy, &at, nil
}

// position is the last event that was handled. It belongs to one stream: a notebook that was restored has another, with other
// sequences, and a position beyond a stream's end would wait for ever, so it is kept with the time at which the stream was made.
type position struct {
	path     string
	Created  time.Time `json:"created"`
	Sequence uint64    `json:"sequence"`
}

func (p *position) load(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("ask for the stream: %w", err)
	}
	created := s.CachedInfo().Created
	if p.path == "" {
		return nil
	}
	text, err := os.ReadFile(p.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the position: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(text, p); err != nil {
			return fmt.Errorf("read the position in %s: %w", p.path, err)
		}
	}
	if !p.Created.Equal(created) || p.Sequence > s.CachedInfo().State.LastSeq {
		if p.Sequence > 0 {
			fmt.Fprintln(os.Stderr, "subscriber: the notebook is another one than last time: reading it from the start")
		}
		p.Created, p.Sequence = created, 0
	}
	return nil
}

// save replaces the file in one step, so that a crash leaves the old position or the new one.
func (p *position) save() error {
	if p.path == "" {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	part := p.path + ".part"
	if err := os.WriteFile(part, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(part, p.path)
}
