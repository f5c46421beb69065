package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/notebook"
)

const (
	hopCount = 6

	chainP50   = 250 * time.Millisecond
	chainRatio = 3
)

// Names of the samples.
const (
	sampleChain      = "Chain/fast-run"
	sampleHops       = "Chain/six-bare-hops"
	sampleProjection = "Chain/projection"
	sampleTogether   = "Chain/projection-at-once"
	sampleStep       = "Chain/step=" // and an event's type: from the event before until it was stored
	unitRatio        = "x-floor"
	unitEvents       = "events/op"
)

// measureChain measures, in turns: a replayed run through the processes of `factstream up`; six bare hops over the same server, so with the
// same waiting for the disk; and what notebook.db needs for the events of that run, one transaction each. The ratio is to the last two together. The gateway
// writes what comes at about the same time together, and tells before it has written: so the same in one transaction is beside it.
func measureChain(ctx context.Context, r *run) ([]Row, error) {
	u, err := r.up(ctx, r.place("chain"))
	if err != nil {
		return nil, err
	}
	defer u.stop()
	nc, js, err := u.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	hops, err := openHops(ctx, u)
	if err != nil {
		return nil, err
	}
	defer hops.close()
	events := 0
	for i := range r.chainWarmup + r.chainRuns {
		thread, err := u.create(ctx)
		if err != nil {
			return nil, err
		}
		chain, count, err := u.replay(ctx, thread, "fast")
		if err != nil {
			return nil, err
		}
		floor, err := hops.pass(ctx)
		if err != nil {
			return nil, err
		}
		messages, err := eventsOf(ctx, js, thread, 1+int(count))
		if err != nil {
			return nil, err
		}
		projecting, err := project(ctx, r.place("notebook")+".db", messages[:1], messages[1:], 1)
		if err != nil {
			return nil, err
		}
		together, err := project(ctx, r.place("notebook")+".db", messages[:1], messages[1:], len(messages))
		if err != nil {
			return nil, err
		}
		if i < r.chainWarmup {
			continue
		}
		events = int(count)
		r.samples.took(sampleChain, 1, chain, Value{float64(chain) / float64(floor+projecting), unitRatio}, Value{float64(count), unitEvents})
		r.samples.took(sampleHops, 1, floor)
		r.samples.took(sampleProjection, 1, projecting, Value{float64(count), unitEvents})
		r.samples.took(sampleTogether, 1, together, Value{float64(count), unitEvents})
		for i := 2; i < len(messages); i++ { // the first two, thread.created and run.requested, are requests from outside
			r.samples.took(sampleStep+step(messages[i].Subject), 1, messages[i].Time.Sub(messages[i-1].Time))
		}
	}
	section := fmt.Sprintf("chain: one replayed fast run until settled (%d runs)", r.chainRuns)
	s := r.samples
	return []Row{
		under(section, "p50", float64(s.duration(sampleChain, 0.5)), float64(chainP50), millis),
		{Section: section, What: "p95", Figure: millis(float64(s.duration(sampleChain, 0.95)))},
		{Section: section, What: "six bare hops, same server, p50", Figure: millis(float64(s.duration(sampleHops, 0.5)))},
		{Section: section, What: fmt.Sprintf("its %d events into notebook.db, p50", events), Figure: millis(float64(s.duration(sampleProjection, 0.5)))},
		{Section: section, What: "the same in one transaction, p50", Figure: millis(float64(s.duration(sampleTogether, 0.5)))},
		atMost(section, "run / (hops + notebook.db), p50", s.median(sampleChain, unitRatio), chainRatio),
	}, nil
}

// step is the type of an event by its subject, as "facts.distilled".
func step(subject string) string {
	p, err := topology.Parse(subject)
	if err != nil {
		return subject
	}
	return p.Family + "." + p.Verb
}

// project writes events into a notebook.db of their own, atOnce in one transaction, and returns how long that took. before is written first and not
// counted.
func project(ctx context.Context, path string, before, events []notebook.Message, atOnce int) (took time.Duration, err error) {
	err = projection.Fold(ctx, path, time.Now(), func(do func([]notebook.Message) error) error {
		if err := do(before); err != nil {
			return err
		}
		began := time.Now()
		for some := range slices.Chunk(events, atOnce) {
			if err := do(some); err != nil {
				return err
			}
		}
		took = time.Since(began)
		return nil
	})
	return took, err
}

// hops is a chain of bare consumers on a stream that is configured like the notebook's, on the same server: each publishes a message when it has
// got one, then acknowledges what it got.
type hops struct {
	js      jetstream.JetStream
	arrived chan error // the last message of a pass, or why there will be none
	close   func()
}

const hopStream = "BENCH"

func hopSubject(n int) string { return fmt.Sprintf("bench.hop.%d", n) }

// hopPayload is about the size of the smaller events.
var hopPayload = make([]byte, 1024)

func openHops(ctx context.Context, u *up) (_ *hops, err error) {
	var connections []*nats.Conn
	var iterators []jetstream.MessagesContext
	var running sync.WaitGroup
	h := &hops{arrived: make(chan error, hopCount)}
	h.close = func() {
		for _, it := range iterators {
			it.Stop()
		}
		running.Wait()
		for _, nc := range connections {
			nc.Close()
		}
	}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	connection := func() (jetstream.JetStream, error) {
		nc, js, err := u.dial(ctx)
		if err == nil {
			connections = append(connections, nc)
		}
		return js, err
	}
	if h.js, err = connection(); err != nil {
		return nil, err
	}
	cfg := topology.Streams(topology.Options{})[0]
	cfg.Name, cfg.Description, cfg.Subjects = hopStream, "bare hops", []string{"bench.>"}
	if _, err := h.js.CreateStream(ctx, cfg); err != nil {
		return nil, fmt.Errorf("make the stream for bare hops: %w", err)
	}
	for n := range hopCount {
		js, err := connection() // of its own, as each service has
		if err != nil {
			return nil, err
		}
		d := topology.Durable{Name: fmt.Sprintf("hop-%d", n), Filters: []string{hopSubject(n)}}
		consumer, err := js.CreateConsumer(ctx, hopStream, d.Config(topology.Options{}))
		if err != nil {
			return nil, fmt.Errorf("make a consumer for bare hops: %w", err)
		}
		it, err := consumer.Messages(jetstream.PullMaxMessages(1))
		if err != nil {
			return nil, err
		}
		iterators = append(iterators, it)
		running.Go(func() { h.hop(ctx, js, it, n) })
	}
	return h, nil
}

// hop passes messages on until the iterator is stopped.
func (h *hops) hop(ctx context.Context, js jetstream.JetStream, it jetstream.MessagesContext, n int) {
	for {
		msg, err := it.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return
		}
		if err == nil && n < hopCount-1 {
			_, err = js.Publish(ctx, hopSubject(n+1), hopPayload)
		}
		if n == hopCount-1 || err != nil {
			h.arrived <- err
		}
		if err != nil {
			return
		}
		if err := msg.Ack(); err != nil {
			return // the next pass says so
		}
	}
}

// pass sends one message through all hops.
func (h *hops) pass(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	began := time.Now()
	if _, err := h.js.Publish(ctx, hopSubject(0), hopPayload); err != nil {
		return 0, fmt.Errorf("bare hops: %w", err)
	}
	select {
	case err := <-h.arrived:
		if err != nil {
			return 0, fmt.Errorf("bare hops: %w", err)
		}
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("bare hops: %w", context.Cause(ctx))
	}
}
