package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// note is one event of the notebook as it is streamed.
type note struct {
	Seq    uint64 `json:"-"`
	ID     string
	Type   string
	Thread string
	Run    string
	N      int
	Data   json.RawMessage
}

// kind is the type without its frame: "run.completed".
func (n note) kind() string {
	kind := strings.TrimPrefix(n.Type, "factstream.")
	return kind[:max(strings.LastIndex(kind, "."), 0)]
}

// tape follows the notebook's events from its beginning, over every restart of the gateway.
type tape struct {
	t *testing.T

	mu    sync.Mutex
	notes []note
	fault error
	more  chan struct{} // closed and replaced whenever something changes
}

// follow begins a tape; it ends with the test.
func (a *api) follow() *tape {
	a.t.Helper()
	tape := &tape{t: a.t, more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			tape.listen(ctx, a.url)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	a.t.Cleanup(func() {
		cancel()
		<-done
	})
	return tape
}

// listen takes events in until the connection ends.
func (t *tape) listen(ctx context.Context, url string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+base+"/events", nil)
	if err != nil {
		t.add(nil, err)
		return
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Last-Event-ID", strconv.FormatUint(t.last(), 10))
	response, err := client.Do(request)
	if err != nil {
		return // the gateway is being started again
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return
	}
	id, name, data := "", "", ""
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && name == "gap":
			t.add(nil, fmt.Errorf("a gap: %s", data))
			return
		case lines.Text() == "" && data != "":
			t.add(parseNote(id, data))
			name, data = "", ""
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data += value
		}
	}
}

func parseNote(id, data string) (*note, error) {
	var n note
	if err := json.Unmarshal([]byte(data), &n); err != nil {
		return nil, fmt.Errorf("event %s: %w: %s", id, err, data)
	}
	var err error
	n.Seq, err = strconv.ParseUint(id, 10, 64)
	return &n, err
}

func (t *tape) add(n *note, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.fault == nil {
		t.fault = err
	}
	if n != nil {
		t.notes = append(t.notes, *n)
	}
	close(t.more)
	t.more = make(chan struct{})
}

// last is the sequence of the newest event, 0 before the first.
func (t *tape) last() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.notes) == 0 {
		return 0
	}
	return t.notes[len(t.notes)-1].Seq
}

// await waits until an event has come that fulfils the condition, and gives the first of these.
func (t *tape) await(what string, fulfils func(note) bool) note {
	t.t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		t.mu.Lock()
		notes, more, fault := t.notes, t.more, t.fault
		t.mu.Unlock()
		require.NoError(t.t, fault)
		for ; seen < len(notes); seen++ {
			if fulfils(notes[seen]) {
				return notes[seen]
			}
		}
		select {
		case <-more:
		case <-deadline:
			for _, n := range notes {
				t.t.Logf("%d %s %s %s %d", n.Seq, n.kind(), n.Thread, n.Run, n.N)
			}
			t.t.Fatalf("no event comes: %s", what)
		}
	}
}

// awaitRun waits for an event of a kind about a run.
func (t *tape) awaitRun(kind, run string) note {
	t.t.Helper()
	return t.await(kind+" of "+run, func(n note) bool { return n.kind() == kind && n.Run == run })
}

// until waits until the tape has reached a position and gives everything up to it.
func (t *tape) until(position uint64) []note {
	t.t.Helper()
	t.await(fmt.Sprintf("position %d", position), func(n note) bool { return n.Seq >= position })
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]note(nil), t.notes...)
}
