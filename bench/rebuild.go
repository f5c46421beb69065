package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

const unitPeak = "peak-RSS-bytes"

const (
	// rebuildWithin is how long one may take. It is much: a machine that others use, and slower.
	rebuildWithin = 15 * time.Minute
	// rebuildsUpTo is the time after which no further one is begun, so that the whole does not take too long on such a machine.
	rebuildsUpTo = time.Minute
)

// measureRebuild has a gateway with an empty directory read a stream of many events (100,000): two recorded runs of one thread, again and again under
// other ids. It counts from the start of the process until everything is in notebook.db.
func measureRebuild(ctx context.Context, r *run) ([]Row, error) {
	thread, err := recordThread(ctx, r)
	if err != nil {
		return nil, err
	}
	data := r.place("rebuild")
	server, err := embedded.Start(ctx, embedded.Options{Dir: data, NoSync: true, Logger: zerolog.Nop()}) // only read while it is measured
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	nc, js, err := dial(ctx, server.URL(), data)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if err := topology.Declare(ctx, js, topology.Options{}); err != nil {
		return nil, err
	}
	last, err := fill(ctx, js, newStencil(thread), r.events)
	if err != nil {
		return nil, fmt.Errorf("make a stream of %d events: %w", r.events, err)
	}
	bus, err := natsURL(server.URL(), data)
	if err != nil {
		return nil, err
	}
	sample := fmt.Sprintf("Rebuild/events=%d", r.events)
	for began, done := time.Now(), 0; done == 0 || done < r.rebuilds && time.Since(began) < rebuildsUpTo; done++ {
		took, memory, err := rebuild(ctx, r, bus, last)
		if err != nil {
			return nil, err
		}
		values := []Value{{float64(r.events) / took.Seconds(), unitRate}}
		if memory >= 0 {
			values = append(values, Value{float64(memory), unitPeak})
		}
		r.samples.took(sample, 1, took, values...)
	}
	s := r.samples
	section := fmt.Sprintf("notebook.db made again from %d events (p50 of %d)", r.events, len(s.figures(sample, "ns/op")))
	rows := []Row{
		{Section: section, What: "from the gateway's start to the last event", Figure: millis(float64(s.duration(sample, 0.5)))},
		{Section: section, What: "events", Figure: perSecond(s.median(sample, unitRate))},
	}
	if memory := s.figures(sample, unitPeak); len(memory) > 0 {
		rows = append(rows, Row{Section: section, What: "peak memory of the gateway (RSS)", Figure: megabytes(quantile(memory, 0.5))})
	}
	return rows, nil
}

// recordThread returns the events of a thread with a fast and a balanced run.
func recordThread(ctx context.Context, r *run) ([]notebook.Message, error) {
	u, err := r.up(ctx, r.place("record"))
	if err != nil {
		return nil, err
	}
	defer u.stop()
	thread, err := u.create(ctx)
	if err != nil {
		return nil, err
	}
	events := uint64(1) // thread.created
	for _, mode := range []string{"fast", "balanced"} {
		_, more, err := u.replay(ctx, thread, mode)
		if err != nil {
			return nil, err
		}
		events += more
	}
	nc, js, err := u.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	return eventsOf(ctx, js, thread, int(events))
}

// rebuild runs a gateway on an empty directory until its notebook.db has the last sequence. memory is -1 where the system does not tell.
func rebuild(ctx context.Context, r *run, bus string, last uint64) (took time.Duration, memory int64, err error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, 0, err
	}
	p, err := r.spawn(ctx, "gateway", []string{"FACTSTREAM_DATA=" + r.place("gateway"), "FACTSTREAM_HTTP=127.0.0.1:" + ports[0], "NATS_URL=" + bus})
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	g := gateway{"http://127.0.0.1:" + ports[0]}
	err = p.within(ctx, rebuildWithin, "notebook.db has every event", 20*time.Millisecond, func(ctx context.Context) bool {
		position, err := g.readiness(ctx)
		return err == nil && position >= last
	})
	if err != nil {
		return 0, 0, err
	}
	took = time.Since(p.began)
	if memory, err = peak(p.pid); errors.Is(err, errNotTold) {
		memory, err = -1, nil
	}
	return took, memory, err
}

// fill appends copies of a thread until the stream has so many events, and returns its last sequence.
func fill(ctx context.Context, js jetstream.JetStream, s stencil, events int) (last uint64, err error) {
	copies := 0
	var pending []batch.Message
	for left := events; left > 0; {
		if len(pending) == 0 {
			pending = s.copy(copies)
			copies++
		}
		var some []batch.Message
		for len(some) < min(left, batch.MaxMessages) {
			if len(pending) == 0 {
				pending = s.copy(copies)
				copies++
			}
			n := min(len(pending), min(left, batch.MaxMessages)-len(some))
			some, pending = append(some, pending[:n]...), pending[n:]
		}
		if last, err = batch.Publish(ctx, js, some, batch.Expect{}); err != nil {
			return 0, err
		}
		left -= len(some)
	}
	return last, nil
}

// stencil makes copies of events under other ids. Ids have one form (text.ID), so that they are found without knowing the events.
type stencil []stencilEvent

type stencilEvent struct {
	message       notebook.Message
	subject, body stencilText
}

// stencilText is a text cut at its ids: plain, id, plain, id, ..., plain.
type stencilText struct{ plain, ids []string }

var idForm = regexp.MustCompile(`\b[a-z2-7]{24}\b`)

func newStencil(events []notebook.Message) stencil {
	cut := func(s string) (out stencilText) {
		from := 0
		for _, at := range idForm.FindAllStringIndex(s, -1) {
			out.plain, out.ids = append(out.plain, s[from:at[0]]), append(out.ids, s[at[0]:at[1]])
			from = at[1]
		}
		out.plain = append(out.plain, s[from:])
		return out
	}
	var s stencil
	for _, m := range events {
		m.Header = maps.Clone(m.Header)
		maps.DeleteFunc(m.Header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Nats-") }) // the condition that it was appended under
		s = append(s, stencilEvent{message: m, subject: cut(m.Subject), body: cut(string(m.Data))})
	}
	return s
}

// copy is the n-th copy: an id that was the same in two places is the same in them again, and in no other copy.
func (s stencil) copy(n int) []batch.Message {
	number, fresh := strconv.Itoa(n), map[string]string{}
	fill := func(t stencilText) string {
		var b strings.Builder
		for i, plain := range t.plain {
			b.WriteString(plain)
			if i == len(t.ids) {
				break
			}
			id, known := fresh[t.ids[i]]
			if !known {
				id = text.ID("bench", number, t.ids[i])
				fresh[t.ids[i]] = id
			}
			b.WriteString(id)
		}
		return b.String()
	}
	out := make([]batch.Message, len(s))
	for i, e := range s {
		out[i] = batch.Message{Subject: fill(e.subject), Header: e.message.Header, Data: []byte(fill(e.body))}
	}
	return out
}
