package projection

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/notebook"
)

// filled has 10,000 events of 100 threads, of the size of a run's middle ones.
func filled(b *testing.B) (p *Projection, last uint64) {
	p = alone(b)
	padding := strings.Repeat("x", 2<<10)
	for last < 10_000 {
		var some []notebook.Message
		for range projector.DefaultBatch {
			last++
			some = append(some, notebook.Message{
				Seq: last, Original: last, Time: time.Unix(int64(last), 0), Subject: fmt.Sprintf("ext.note.t%d.0.0", last%100),
				Data: fmt.Appendf(nil, `{"id":"e%d","cause":"c%d","data":"%s"}`, last, last, padding),
			})
		}
		applied(b, p, some)
	}
	return p, last
}

// What a watcher's look costs when it was told that something was committed.
func BenchmarkEvents(b *testing.B) {
	p, last := filled(b)
	newest := fmt.Sprintf("t%d", last%100)
	for _, c := range []struct {
		name, thread string
		after        uint64
		want         int
	}{
		{"of=this-thread", newest, last - 1, 1},
		{"of=another-thread", "t50", last - 1, 0},
		{"of=all", "", last - 1, 1},
		{"of=all-a-page-behind", "", last - 256, 256},
		{"of=all-far-behind", "", 0, 256},
		{"of=a-thread-far-behind", "t50", 0, (int(last) + 50) / 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				events, _, err := p.Events(ctx, c.thread, c.after, 256)
				if err != nil || len(events) != c.want {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}

// The statements of POST /threads/{t}/runs and of whatever names a run.
func BenchmarkStatements(b *testing.B) {
	p, last := filled(b)
	for name, ask := range map[string]func(context.Context) error{
		"of=cause": func(ctx context.Context) error {
			_, err := p.FirstOfCause(ctx, "t50", fmt.Sprintf("c%d", last+1))
			return err
		},
		"of=thread":   func(ctx context.Context) error { _, err := p.ThreadOf(ctx, Runs, "r1"); return err },
		"of=metadata": func(ctx context.Context) error { _, err := p.Metadata(ctx, []string{"r1"}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				_ = ask(ctx) // mostly that there is none
			}
		})
	}
}
