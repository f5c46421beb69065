package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// public is what persons do over HTTP, and what they were promised by it.
type public struct {
	urls  []string // of the gateways, which are asked in turn
	name  string   // of the run of the harness: keys begin with it
	asked atomic.Uint64

	mu       sync.Mutex
	threads  []string // that were opened
	promises []promise
	counts   map[Kind]int // faults of their own
	answers  map[int]int  // how often each status came
	odd      []string     // answers that must not be
}

// promise is a write that was accepted: its event must be in the stream, unless the thread was deleted.
type promise struct {
	what   string
	kind   string // of the event
	thread string
	entity string
}

// reply is the part of an answer that is looked at.
type reply struct {
	ID     string
	Thread string
	Type   string
	Detail string
	Status any
}

// act does one move, again and again under its key until it is known what came of it, or ctx ends.
func (p *public) act(ctx context.Context, n int, m Move) {
	method, path, thread, ok := p.aim(ctx, m)
	if !ok {
		return
	}
	body := m.Body
	if m.Action == "retry" {
		body = map[string]any{}
	}
	key := fmt.Sprintf("%s-%d", p.name, n)
	var other chan struct{}
	switch m.How {
	case KindHangUp:
		short, cancel := context.WithTimeout(ctx, time.Duration(1+m.Pick%15)*time.Millisecond)
		_, _, err := p.send(short, method, path, key, body)
		cancel()
		if err != nil {
			p.count(KindHangUp)
		}
	case KindTwice:
		p.count(KindTwice)
		other = make(chan struct{})
		go func() {
			defer close(other)
			p.until(ctx, m, method, path, thread, key, body)
		}()
	}
	p.until(ctx, m, method, path, thread, key, body)
	if other != nil {
		<-other
	}
}

func (p *public) until(ctx context.Context, m Move, method, path, thread, key string, body map[string]any) {
	for ctx.Err() == nil {
		status, text, err := p.send(ctx, method, path, key, body)
		if err == nil && status < 500 {
			p.note(m, status, text, thread)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(150 * time.Millisecond):
		}
	}
}

// aim finds what a move is about; ok is false when there is nothing of the kind.
func (p *public) aim(ctx context.Context, m Move) (method, path, thread string, ok bool) {
	if m.Action == "create" {
		return http.MethodPost, "/threads", "", true
	}
	p.mu.Lock()
	if len(p.threads) > 0 {
		thread = p.threads[m.Pick%uint64(len(p.threads))]
	}
	p.mu.Unlock()
	if thread == "" {
		return "", "", "", false
	}
	at := "/threads/" + thread
	switch m.Action {
	case "start", "pause", "rebuild":
		return http.MethodPost, at + "/" + m.Action, thread, true
	case "run":
		return http.MethodPost, at + "/runs", thread, true
	case "ask":
		return http.MethodPost, at + "/questions", thread, true
	case "configure":
		return http.MethodPatch, at, thread, true
	case "delete":
		return http.MethodDelete, at, thread, true
	}
	var runs struct{ Items []reply }
	if status, text, err := p.send(ctx, http.MethodGet, at+"/runs", "", nil); err != nil || status != http.StatusOK || json.Unmarshal(text, &runs) != nil || len(runs.Items) == 0 {
		return "", "", "", false
	}
	run := runs.Items[(m.Pick>>20)%uint64(len(runs.Items))].ID
	switch m.Action {
	case "cancel":
		return http.MethodPost, "/runs/" + run + "/cancel", thread, true
	case "retry":
		return http.MethodPost, "/runs/" + run + "/stages/" + m.Body["stage"].(string) + "/retry", thread, true
	default:
		return http.MethodDelete, "/runs/" + run, thread, true
	}
}

// note remembers what was promised by an answer.
func (p *public) note(m Move, status int, text []byte, thread string) {
	var r reply
	err := json.Unmarshal(text, &r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[status]++
	if err != nil || status >= 400 && (!strings.HasPrefix(r.Type, "urn:factstream:problem:") || r.Detail == "") {
		p.odd = append(p.odd, fmt.Sprintf("%s is answered %d %.200s", m.Action, status, text))
		return
	}
	if status >= 300 {
		return
	}
	switch m.Action {
	case "create":
		p.threads = append(p.threads, r.ID)
		p.promises = append(p.promises, promise{"a new thread", "thread.created", r.ID, "0"})
	case "run":
		p.promises = append(p.promises, promise{"a run", "run.requested", thread, r.ID})
	case "ask":
		p.promises = append(p.promises, promise{"a question", "question.asked", thread, r.ID})
	case "delete":
		p.promises = append(p.promises, promise{"a deletion", "thread.deleted", thread, "0"})
	}
}

func (p *public) count(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[kind]++
}

// sendWithin is how long one request may take: longer than the gateway's own patience with the bus.
const sendWithin = 15 * time.Second

func (p *public) send(ctx context.Context, method, path, key string, body map[string]any) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	var content io.Reader
	if body != nil && (method == http.MethodPost || method == http.MethodPatch) {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	url := p.urls[p.asked.Add(1)%uint64(len(p.urls))]
	request, err := http.NewRequestWithContext(ctx, method, url+"/api/v1"+path, content)
	if err != nil {
		return 0, nil, err
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
