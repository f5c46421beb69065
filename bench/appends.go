package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

const (
	unitRate    = "events/s"
	unitFlushes = "flushes/op"
)

// measureAppends appends through the production Appender: decided on the newest state, published under the condition of the thread, seen by
// the own tail. In turns with it bare publishes of as many bytes to the same stream, which is what the server and the disk allow. The bus is
// a process of its own, as it is for every service.
func measureAppends(ctx context.Context, r *run) ([]Row, error) {
	data := r.place("appends")
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	bus, err := r.spawn(ctx, "factstream", []string{"FACTSTREAM_DATA=" + data, "NATS_PORT=" + ports[0]}, "bus")
	if err != nil {
		return nil, err
	}
	defer bus.stop()
	address := "nats://127.0.0.1:" + ports[0]
	if err := bus.until(ctx, "the bus is ready", 5*time.Millisecond, func(context.Context) bool { return strings.Contains(bus.output.String(), address) }); err != nil {
		return nil, err
	}
	nc, js, err := dial(ctx, address, data)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	tail := notebook.NewTail(js, zerolog.Nop())
	tailing, endTail := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- tail.Run(tailing) }()
	defer func() {
		endTail()
		<-ended
	}()
	w, err := newWriting(ctx, js, notebook.NewAppender(js, tail, time.Now))
	if err != nil {
		return nil, err
	}

	for range r.appendRounds {
		for _, writers := range []int{1, len(w.threads)} {
			for by, write := range map[string]func(context.Context, int, int) error{"publish": w.publish, "append": w.append} {
				events, took, flushed, err := w.timed(ctx, data, writers, r.appendSample, write)
				if err != nil {
					return nil, err
				}
				values := []Value{{float64(events) / took.Seconds(), unitRate}}
				if flushed >= 0 {
					values = append(values, Value{float64(flushed) / float64(events), unitFlushes})
				}
				r.samples.took(appendSample(writers, by), events, took, values...)
			}
		}
	}
	return appendRows(r, len(w.threads)), nil
}

func appendSample(writers int, by string) string {
	return fmt.Sprintf("Append/writers=%d/by=%s", writers, by)
}

func appendRows(r *run, most int) []Row {
	s := r.samples
	section := fmt.Sprintf("appends, fsync on, a thread for each writer (p50 of %d)", r.appendRounds)
	var rows []Row
	for _, writers := range []int{1, most} {
		who := "1 writer"
		if writers > 1 {
			who = fmt.Sprintf("%d writers", writers)
		}
		appended, bare := appendSample(writers, "append"), appendSample(writers, "publish")
		rows = append(rows,
			Row{Section: section, What: who + ": events", Figure: perSecond(s.median(appended, unitRate))},
			Row{Section: section, What: "  bare publishes / appends", Figure: times(s.ratio(bare, appended, unitRate))})
		if flushes := s.figures(appended, unitFlushes); len(flushes) > 0 {
			rows = append(rows, Row{Section: section, What: "  flushes of the disk, each event", Figure: fmt.Sprintf("%.2f", quantile(flushes, 0.5))})
		}
	}
	return rows
}

// writing is a number of writers in one process, as the requests to a gateway are.
type writing struct {
	js       jetstream.JetStream
	appender *notebook.Appender
	threads  []string
	body     []byte // of a bare publish: as large as an event
}

const mostWriters = 8

func newWriting(ctx context.Context, js jetstream.JetStream, appender *notebook.Appender) (*writing, error) {
	w := &writing{js: js, appender: appender}
	for range mostWriters {
		thread := text.RandomID()
		_, err := appender.Append(ctx, thread, notebook.CreateThread{Question: "How fast?", Settings: event.Settings{
			Provider: event.Tabstack, Mode: event.Fast, Depth: 3, Batch: 1, Engine: "extractive", Budget: 2000,
		}}, notebook.Origin{})
		if err != nil {
			return nil, err
		}
		w.threads = append(w.threads, thread)
	}
	appended, err := appender.Append(ctx, w.threads[0], configure(1), notebook.Origin{})
	if err != nil {
		return nil, err
	}
	w.body, err = event.Marshal(appended.Events[0])
	return w, err
}

// configure is a command that leads to one event, in a state that does not grow.
func configure(i int) notebook.Command {
	budget := 2000 + i%2
	return notebook.Configure{Changes: event.ThreadConfigured{Budget: &budget}}
}

func (w *writing) append(ctx context.Context, writer, i int) error {
	appended, err := w.appender.Append(ctx, w.threads[writer], configure(i), notebook.Origin{})
	if err == nil && len(appended.Events) != 1 {
		err = fmt.Errorf("%w: an append of %d events", errUnfit, len(appended.Events))
	}
	return err
}

func (w *writing) publish(ctx context.Context, writer, i int) error {
	_, err := w.js.Publish(ctx, fmt.Sprintf("ext.bench.bench.w%d.%d", writer, i), w.body)
	return err
}

// timed has the writers write for a while. flushed is -1 where the system does not tell.
func (w *writing) timed(ctx context.Context, dir string, writers int, sample time.Duration, write func(ctx context.Context, writer, i int) error) (events int, took time.Duration, flushed int64, err error) {
	var wg sync.WaitGroup
	var count atomic.Int64
	faults := make([]error, writers)
	before, flushErr := flushes(dir)
	began := time.Now()
	for writer := range writers {
		wg.Go(func() {
			for i := 0; faults[writer] == nil && time.Since(began) < sample; i++ {
				faults[writer] = write(ctx, writer, i)
				count.Add(1)
			}
		})
	}
	wg.Wait()
	took = time.Since(began)
	after, err := flushes(dir)
	flushed = after - before
	if errors.Is(flushErr, errNotTold) {
		flushed, flushErr, err = -1, nil, nil
	}
	return int(count.Load()), took, flushed, errors.Join(append(faults, flushErr, err)...)
}
