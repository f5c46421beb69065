package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
)

// Audit is what an audit has found.
type Audit struct {
	Findings []string       // what is wrong; nothing should be
	Spent    map[string]int // credits that the runs of each thread cost, by its events
	Payments                // what became of the provider's answers
	Dead     uint64         // dead letters
}

// Audit looks at what is left when all is calm: whether the stream still is what was watched, every event that must be there is there
// once, the ledgers are right to the credit, every whole answer among the provider's calls was kept unless a fault explains why not,
// each gateway says what the events say, and each projection is that of a fresh rebuild. What was done to the processes the field
// knows; disk are the times in which their disk was full. It ends the watching and stops the services. Its error says why it could
// not be done.
func (f *Field) Audit(ctx context.Context, w *Watch, calls []standin.Call, disk ...Fault) (a Audit, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if _, err := w.projector.CatchUp(ctx); err != nil {
		return a, err
	}
	if err := w.Close(); err != nil {
		return a, err
	}
	var found findings
	if err := found.stream(ctx, f.JS, w.record); err != nil {
		return a, err
	}
	a.Spent = found.story(w.record)
	found.attempts(w.record)
	done := evidence{faults: append(f.Faults(), disk...), servers: f.Servers}
	a.Payments = found.paid(w.record, calls, done)
	found.ended(f.ends(), done)
	if err := f.awaitProjections(ctx, w); err != nil {
		return a, err
	}
	for _, url := range f.URLs {
		if a.Dead, err = ask(ctx, url, &found, w, a.Spent); err != nil {
			return a, err
		}
	}
	err = f.rebuilt(ctx, &found, w)
	a.Findings = found
	return a, err
}

// ask compares what a gateway says with what the events say.
func ask(ctx context.Context, url string, found *findings, w *Watch, spent map[string]int) (dead uint64, err error) {
	for _, thread := range w.notebook.Threads() {
		if !thread.Exists() && !thread.Deleted { // poison is about threads that never were
			continue
		}
		status, content, err := get(ctx, url+"/api/v1/threads/"+thread.ID)
		if err != nil {
			return 0, err
		}
		if thread.Deleted {
			if status != http.StatusGone {
				found.add("thread %s was deleted and %s answers %d", thread.ID, url, status)
			}
			continue
		}
		var t struct {
			Status string
			Reason struct{ Code, Text string }
			Ledger struct{ Spent, Reserved int }
		}
		if err := json.Unmarshal(content, &t); err != nil {
			found.add("thread %s: %d %.200s", thread.ID, status, content)
			continue
		}
		if t.Status == "running" || t.Ledger.Reserved != 0 || t.Ledger.Spent != spent[thread.ID] {
			found.add("thread %s is %s with %d spent and %d reserved; its runs cost %d", thread.ID, t.Status, t.Ledger.Spent, t.Ledger.Reserved, spent[thread.ID])
		}
		if t.Status != "new" && (t.Reason.Code == "" || t.Reason.Text == "") {
			found.add("thread %s is %s and does not say why", thread.ID, t.Status)
		}
	}
	_, content, err := get(ctx, url+"/readyz")
	if err != nil {
		return 0, err
	}
	var ready struct {
		Ready    bool
		Dead     uint64
		BadCount int `json:"bad_count"`
	}
	if err := json.Unmarshal(content, &ready); err != nil || !ready.Ready {
		found.add("%s is not ready: %.300s", url, content)
	}
	if _, bad := w.notebook.Bad(); bad > 0 && ready.BadCount == 0 {
		found.add("%d messages could not be applied and %s/readyz does not say so", bad, url)
	}
	return ready.Dead, nil
}

// rebuilt compares each projection with one that is built from the stream anew.
func (f *Field) rebuilt(ctx context.Context, found *findings, w *Watch) error {
	f.StopServices()
	grown, err := f.dump()
	if err != nil {
		return err
	}
	for _, file := range f.Projections() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	f.StartServices()
	if err := f.Ready(ctx); err != nil {
		return err
	}
	if err := poll(ctx, "nothing is left of a deleted thread before its tombstone", func() bool { return w.purged(ctx) }); err != nil {
		found.add("%v", err)
	}
	if err := f.awaitProjections(ctx, w); err != nil {
		return err
	}
	f.StopServices()
	anew, err := f.dump()
	if err != nil {
		return err
	}
	for i, file := range f.Projections() {
		lines := difference(grown[i], anew[0])
		if len(lines) == 0 {
			continue
		}
		found.add("the projection %s is not that of a fresh rebuild:\n  %s", file, strings.Join(lines[:min(len(lines), 10)], "\n  "))
		for name, dump := range map[string]string{"grown.txt": grown[i], "anew.txt": anew[0]} {
			if err := os.WriteFile(filepath.Join(f.layout.Dir, name), []byte(dump), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// dump gives what is in each gateway's projection.
func (f *Field) dump() (dumps []string, err error) {
	for _, file := range f.Projections() {
		dump, err := Dump(file)
		if err != nil {
			return nil, err
		}
		dumps = append(dumps, dump)
	}
	return dumps, nil
}

// purged says whether the janitors, which have just been started, have cleared the stream of deleted threads.
func (w *Watch) purged(ctx context.Context) bool {
	stream, err := w.js.Stream(ctx, topology.Notebook)
	if err != nil {
		return false
	}
	for _, e := range w.events {
		if e.Kind() != "thread.deleted" {
			continue
		}
		// What somebody sends afterwards, poison for instance, stays behind the tombstone.
		first, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(topology.ThreadFilter(e.Thread)))
		if err != nil || first.Sequence < e.Seq {
			return false
		}
	}
	return true
}

// awaitProjections waits until every gateway's projection has reached the end of the stream.
func (f *Field) awaitProjections(ctx context.Context, w *Watch) error {
	last, err := w.projector.LastSeq(ctx)
	if err != nil {
		return err
	}
	return poll(ctx, "the projections are complete", func() bool { return f.projected(ctx) >= last })
}

// projected is the position that every gateway's projection has reached.
func (f *Field) projected(ctx context.Context) uint64 {
	least := uint64(math.MaxUint64)
	for _, url := range f.URLs {
		var ready struct{ Projection struct{ Position uint64 } }
		_, content, err := get(ctx, url+"/readyz")
		if err != nil || json.Unmarshal(content, &ready) != nil {
			return 0
		}
		least = min(least, ready.Projection.Position)
	}
	return least
}

// get reads an address.
func get(ctx context.Context, url string) (status int, content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// difference gives the lines that only one of two texts has, with - and + before them.
func difference(a, b string) (out []string) {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]--
	}
	for line := range strings.Lines(b) {
		count[line]++
	}
	for _, line := range slices.Sorted(maps.Keys(count)) {
		switch n := count[line]; {
		case n < 0:
			out = append(out, "- "+strings.TrimSpace(line))
		case n > 0:
			out = append(out, "+ "+strings.TrimSpace(line))
		}
	}
	return out
}
