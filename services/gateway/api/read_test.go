package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

// sse is one event of a stream, or a comment.
type sse struct{ id, name, data, comment string }

// listen opens a stream and gives its events one by one.
func (g *gateway) listen(path string, change ...func(*http.Request)) (next func() sse, stop func()) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), servicetest.Wait)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	require.NoError(g.t, err)
	r.Header = g.header.Clone()
	r.Header.Set("Accept", "text/event-stream")
	for _, c := range change {
		c(r)
	}
	response, err := (&http.Client{Transport: g.transport}).Do(r)
	require.NoError(g.t, err)
	require.Equal(g.t, 200, response.StatusCode)
	require.Equal(g.t, "text/event-stream", response.Header.Get("Content-Type"))
	require.Equal(g.t, "no", response.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	stop = func() {
		cancel()
		_ = response.Body.Close()
	}
	g.t.Cleanup(stop)
	return func() (e sse) {
		g.t.Helper()
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "":
				if e != (sse{}) {
					return e
				}
				if value != "" {
					e.comment = value
				}
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data += value
			}
		}
		require.NoError(g.t, lines.Err())
		return sse{name: "closed"}
	}, stop
}

// named skips comments.
func named(next func() sse) sse {
	for {
		if e := next(); e.name != "" {
			return e
		}
	}
}

func TestEventsResumeExactly(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread, other := g.create("Why?"), g.create("Other?")
	live, stopLive := g.listen("/api/v1/events")
	require.NotEmpty(t, live().comment)
	run := g.run(thread.ID)
	e := named(live)
	require.Equal(t, "factstream.run.requested.v1", e.name)
	var body event.Event
	require.Error(t, json.Unmarshal([]byte(e.data), &body), "data is an interface here; only the envelope is looked at below")
	require.Contains(t, e.data, run.ID)
	stopLive()

	g.complete(thread.ID, run.ID)
	var want []string // all events, read once from the start
	next, stop := g.listen("/api/v1/events", header("Last-Event-ID", "0"))
	for {
		e := named(next)
		want = append(want, e.id+" "+e.name)
		if strings.HasSuffix(e.name, "thread.parked.v1") {
			break
		}
	}
	stop()
	require.True(t, slices.Contains(want, "1 factstream.thread.created.v1"))
	for cut := range want { // and again from behind each of them
		id, _, _ := strings.Cut(want[cut], " ")
		next, stop := g.listen("/api/v1/events?after=" + id)
		var got []string
		for range want[cut+1:] {
			e := named(next)
			got = append(got, e.id+" "+e.name)
		}
		stop()
		require.Equal(t, strings.Join(want[cut+1:], "\n"), strings.Join(got, "\n"))
	}

	next, _ = g.listen("/api/v1/events?thread="+other.ID, header("Last-Event-ID", "0"))
	require.Contains(t, named(next).data, other.ID)
	g.do("DELETE", "/api/v1/threads/"+other.ID, nil).is(200, nil)
	require.Equal(t, "factstream.thread.deleted.v1", named(next).name, "nothing of the other thread came between")
}

func TestAnEventThatIsNotThereIsAGap(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	next, _ := g.listen("/api/v1/events", header("Last-Event-ID", "1000"))
	e := named(next)
	require.Equal(t, []string{"gap", strconv.FormatUint(thread.Position, 10)}, []string{e.name, e.id})
	g.run(thread.ID)
	require.Equal(t, "factstream.run.requested.v1", named(next).name)
}

func TestAnEventOfTheTimeBeforeARestoreIsAGap(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	stream, err := bus.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	cfg.Metadata = map[string]string{topology.MetaBegins: "101"}
	_, err = bus.JS.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(101)))
	g := startOn(t, bus)
	thread := g.create("Why?")
	require.EqualValues(t, 101, thread.Position)
	next, stop := g.listen("/api/v1/events", header("Last-Event-ID", "100"))
	e := named(next)
	require.Equal(t, []string{"gap", "101"}, []string{e.name, e.id})
	require.Contains(t, e.data, "restored")
	stop()
	for _, from := range []string{"0", "101"} { // from the beginning, and behind what there is
		next, stop := g.listen("/api/v1/events", header("Last-Event-ID", from))
		if from == "101" {
			g.run(thread.ID)
		}
		require.NotEqual(t, "gap", named(next).name)
		stop()
	}
}

func TestStreamsCommentAndEndWhenTheGatewayStops(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway", func(c *config.Config) { c.HTTP = "127.0.0.1:0" })
	server, err := api.Open(t.Context(), s, api.Options{CommentEvery: 10 * time.Millisecond})
	require.NoError(t, err)
	stop := servicetest.Run(t, s, server.Parts()...)
	g := client(t, bus, s, server)
	next, _ := g.listen("/api/v1/events")
	require.Equal(t, "from 0", next().comment)
	require.Equal(t, "still here", next().comment, "so that nothing between takes the connection for dead")
	stop()
	for last := next(); last.name != "closed"; last = next() {
		require.Equal(t, "still here", last.comment)
	}
}

func TestASecondGatewayTellsTheSame(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	other := startOn(t, g.bus)
	other.caughtUp()
	at := "/api/v1/threads/" + thread.ID
	for _, path := range []string{"", "/runs", "/facts", "/sources", "/questions", "/contradictions", "/brief", "/coverage", "/brief?history=true"} {
		require.Equal(t, string(g.do("GET", at+path, nil).body), string(other.do("GET", at+path, nil).body), path)
	}
	var again api.Run
	other.do("POST", at+"/runs", `{}`, header("Idempotency-Key", "k")).is(202, &again)
	var same api.Run
	g.caughtUp()
	g.do("POST", at+"/runs", `{}`, header("Idempotency-Key", "k")).is(202, &same)
	require.Equal(t, again.ID, same.ID, "a key counts at every gateway")
	g.do("POST", at+"/runs", `{"mode":"balanced"}`, header("Idempotency-Key", "k")).refused(422, "idempotency-key-reused")
}

func (g *gateway) say(thread, run string, attempt, seq int, name string) {
	g.t.Helper()
	body := fmt.Sprintf(`{"seq":%d,"name":%q,"at":"2026-01-01T00:00:00Z","data":{"message":"m%d"}}`, seq, name, seq)
	_, err := g.service.JS.Publish(g.t.Context(), topology.TrailSubject(thread, run, attempt), []byte(body))
	require.NoError(g.t, err)
}

func TestTheTrailLiveAndAfterwards(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	at := "/api/v1/runs/" + run.ID + "/trail"
	trail := func() (items []api.TrailEvent, attempt, complete string) {
		a := g.do("GET", at, nil)
		a.is(200, &items)
		require.NotNil(t, items)
		return items, a.header.Get("Factstream-Attempt"), a.header.Get("Factstream-Trail-Complete")
	}
	items, attempt, complete := trail()
	require.Equal(t, []any{0, "0", "true"}, []any{len(items), attempt, complete})

	next, _ := g.listen(at)
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	require.Equal(t, sse{name: "attempt", data: `{"attempt":1}`}, named(next))
	g.say(thread.ID, run.ID, 1, 1, "start")
	first := named(next)
	require.Equal(t, "trail", first.name)
	require.JSONEq(t, `{"seq":1,"name":"start","at":"2026-01-01T00:00:00Z","data":{"message":"m1"}}`, first.data)
	g.say(thread.ID, run.ID, 1, 2, "planning:start")
	second := named(next)

	resumed, _ := g.listen(at, header("Last-Event-ID", first.id))
	require.Equal(t, second, named(resumed))

	g.append(thread.ID, notebook.FailAttempt{Run: run.ID, N: 1, Code: "cut", Retryable: true, Delays: make([]time.Duration, 2)})
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3, After: 1})
	require.Equal(t, sse{name: "attempt", data: `{"attempt":2}`}, named(next))
	g.say(thread.ID, run.ID, 2, 1, "start")
	require.Contains(t, named(next).data, `"start"`)
	_, err := g.service.JS.Publish(t.Context(), topology.TrailSubject(thread.ID, run.ID, 2), []byte("<not json>"))
	require.NoError(t, err)
	require.Contains(t, named(next).data, `"raw"`)
	c := gatewaytest.Completed(thread.ID)
	c.Attempt = 2
	g.append(thread.ID, notebook.CompleteRun{Run: run.ID, Completed: c})
	require.Equal(t, "end", named(next).name)
	require.Equal(t, "closed", next().name)

	items, attempt, complete = trail()
	require.Equal(t, []any{2, "2", "false"}, []any{len(items), attempt, complete}, "the earlier trail is out of view, and what came last is not numbered")
	require.Equal(t, "start", items[0].Name)

	stream, err := g.service.JS.Stream(t.Context(), topology.Trail)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	items, _, complete = trail()
	require.Equal(t, []any{0, "false"}, []any{len(items), complete}, "it had two events, and no raw answer was kept")

	raw, err := g.service.Artifacts.Put(t.Context(), thread.ID, []byte("event: start\ndata: {\"message\":\"m1\"}\n\nevent: complete\ndata: {\"message\":\"m2\",\"report\":\"r\"}\n\n"))
	require.NoError(t, err)
	require.NoError(t, g.service.Artifacts.Name(t.Context(), thread.ID, artifact.AttemptName(run.ID, 2), raw))
	items, _, complete = trail()
	require.Equal(t, []any{2, "true"}, []any{len(items), complete}, "the raw answer is decoded again")
	require.Equal(t, "complete", items[1].Name)
	require.JSONEq(t, `{"message":"m2"}`, string(items[1].Data))
	watched, _ := g.listen(at)
	require.Equal(t, "attempt", named(watched).name)
	require.Contains(t, named(watched).data, `"start"`)
	require.Contains(t, named(watched).data, `"complete"`)
	require.Equal(t, "end", named(watched).name)
	g.do("GET", at, nil, header("Accept", "text/event-stream"), header("Last-Event-ID", "x")).refused(422, "invalid-event-id")
}

// The trail of a completed run is read from the answer that its event refers to, which need not have a name.
func TestTheTrailOfACompletedRunIsInTheAnswerThatItsEventNames(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	raw, err := g.service.Artifacts.Put(t.Context(), thread.ID, []byte("event: start\ndata: {\"message\":\"m1\"}\n\nevent: complete\ndata: {\"message\":\"m2\"}\n\n"))
	require.NoError(t, err)
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	c := gatewaytest.Completed(thread.ID)
	c.Attempt, c.Events, c.Raw = 1, 2, event.Blob{Ref: raw.Ref, SHA256: raw.SHA256, Size: raw.Size}
	g.append(thread.ID, notebook.CompleteRun{Run: run.ID, Completed: c})
	g.caughtUp()
	a := g.do("GET", "/api/v1/runs/"+run.ID+"/trail", nil)
	var items []api.TrailEvent
	a.is(200, &items)
	require.Len(t, items, 2)
	require.Equal(t, "complete", items[1].Name)
	require.Equal(t, "true", a.header.Get("Factstream-Trail-Complete"))
}

func TestARunSaysWhatItWaitsForAndWhatItDoes(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	at := "/api/v1/runs/" + run.ID
	since := g.service.Now().UTC()
	g.progress(thread.ID, run.ID, event.StageRun, progress.State{State: progress.Waiting, Since: since, Text: "the provider: another run is under way"})
	var v api.Run
	g.do("GET", at, nil).is(200, &v)
	require.Equal(t, "the provider: another run is under way", v.Waiting.For)
	require.Equal(t, "pending", v.Stages[0].State)

	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	g.progress(thread.ID, run.ID, event.StageRun, progress.State{State: progress.Running, Since: since, Text: "searching:start"})
	g.caughtUp()
	v = api.Run{}
	g.do("GET", at, nil).is(200, &v)
	require.Equal(t, []any{"searching:start", "running"}, []any{v.Phase, v.Status})
	require.Nil(t, v.Waiting)

	g.append(thread.ID, notebook.FailAttempt{Run: run.ID, N: 1, Code: "rate_limited", Detail: "429", Retryable: true, After: time.Hour, Delays: []time.Duration{time.Hour}})
	g.caughtUp()
	v = api.Run{}
	g.do("GET", at, nil).is(200, &v)
	require.Contains(t, v.Waiting.For, "rate_limited")
	require.NotNil(t, v.Waiting.Until)
	require.Equal(t, "rate_limited", v.Attempts[0].Outcome)

	other := g.create("And this?")
	second := g.run(other.ID)
	g.append(other.ID, notebook.StartAttempt{Run: second.ID, Max: 3})
	g.append(other.ID, notebook.CompleteRun{Run: second.ID, Completed: gatewaytest.Completed(other.ID)})
	g.progress(other.ID, second.ID, event.StageDistill, progress.State{State: progress.Waiting, Since: since, Text: "for the model, which judge is using", Engine: "ollama"})
	g.caughtUp()
	v = api.Run{}
	g.do("GET", "/api/v1/runs/"+second.ID, nil).is(200, &v)
	require.Equal(t, []any{"the model, which judge is using", "waiting", "ollama"}, []any{v.Waiting.For, v.Stages[0].State, v.Stages[0].Engine})
	g.append(other.ID, notebook.FailStage{Stage: event.StageDistill, Entity: second.ID, Class: event.ClassModelAway, Reason: "no model"})
	g.caughtUp()
	v = api.Run{}
	g.do("GET", "/api/v1/runs/"+second.ID, nil).is(200, &v)
	require.Equal(t, []string{"failed", "no model", "skipped", "skipped"}, []string{v.Stages[0].State, v.Stages[0].Error, v.Stages[1].State, v.Stages[2].State})
	var th api.Thread
	g.do("GET", "/api/v1/threads/"+other.ID, nil).is(200, &th)
	require.Equal(t, "distill", th.KnowledgeError.Stage)
	gatewaytest.Settle(t, g.service, other.ID)
	g.do("POST", "/api/v1/runs/"+second.ID+"/stages/nonsense/retry", nil).refused(422, "invalid-stage")
	g.do("POST", "/api/v1/runs/"+second.ID+"/stages/brief/retry", nil).is(202, nil)
}

func TestReadinessTellsWhatWorks(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	var r api.Ready
	g.do("GET", "/readyz", nil).is(200, &r)
	require.True(t, r.Ready)
	require.True(t, r.Bus)
	require.Equal(t, "extractive", r.Model.Engine)
	require.Equal(t, api.ProviderState{Mode: "replay", Name: "tabstack"}, r.Provider)
	require.Equal(t, thread.Position, r.Projection.Position)
	require.Positive(t, r.StoreFree)
	require.Empty(t, r.BadEvents)

	_, err := g.service.JS.Publish(t.Context(), "ext.note."+thread.ID+".0.0", []byte("not an event"))
	require.NoError(t, err)
	require.NoError(t, dead.Put(t.Context(), g.service.JS, dead.Item{Durable: topology.Judge, Reason: "bad", Stream: topology.Notebook, StreamSeq: 7, Subject: "x", Data: []byte("\xff")}))
	g.caughtUp()
	g.do("GET", "/readyz", nil).is(200, &r)
	require.True(t, r.Ready)
	require.Equal(t, 1, r.BadCount)
	require.EqualValues(t, 1, r.Dead)
	require.Contains(t, r.BadEvents[0].Error, "malformed")
	metrics := string(g.do("GET", "/metrics", nil).body)
	for _, want := range []string{
		"factstream_dead_letters 1", "factstream_bad_events 1", "factstream_projection_lag_events 0", "factstream_credits_budget 2000", "factstream_credits_spent_total 0", "factstream_credits_reserved 0",
		`factstream_threads{status="new"} 1`, "factstream_threads_stuck 0", `factstream_lease_held{holder="",lease="provider.tabstack"} 0`, "go_goroutines",
	} {
		require.Contains(t, metrics, want)
	}
	held := make(chan struct{})
	release := make(chan struct{})
	go func() {
		_ = g.service.Leases.Do(context.Background(), "provider.tabstack", 0, func(context.Context) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	require.Contains(t, string(g.do("GET", "/metrics", nil).body), `factstream_lease_held{holder="gateway@`)
	close(release)
}

// leaderless is a bus of which too few servers are there to store anything.
type leaderless struct{ jetstream.JetStream }

func (leaderless) AccountInfo(context.Context) (*jetstream.AccountInfo, error) {
	return nil, &jetstream.APIError{Code: http.StatusServiceUnavailable, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}
}

// A command of Ollama is of no use before there is an Ollama: then it comes first.
func TestTheHintForAModelBeginsWithWhatIsMissingFirst(t *testing.T) {
	t.Parallel()
	pull := "ollama pull llama3.2:3b && ollama pull nomic-embed-text"
	var ready api.Ready
	without := start(t, func(c *config.Config) { c.Engine, c.Ollama.Host = "auto", "http://127.0.0.1:1" })
	without.do("GET", "/readyz", nil).is(200, &ready)
	require.Equal(t, "no Ollama answers at http://127.0.0.1:1: install it from https://ollama.com and start it, then "+pull, ready.Model.Hint)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version":"0.5.0","models":[]}`)
	}))
	t.Cleanup(empty.Close)
	with := start(t, func(c *config.Config) { c.Engine, c.Ollama.Host = "auto", empty.URL })
	with.do("GET", "/readyz", nil).is(200, &ready)
	require.Equal(t, pull, ready.Model.Hint)
}

func TestABusThatStoresNothingIsNotReadyThoughItAnswers(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway", func(c *config.Config) { c.HTTP = "127.0.0.1:0" })
	server, err := api.Open(t.Context(), s, api.Options{})
	require.NoError(t, err)
	s.JS = leaderless{s.JS}
	servicetest.Run(t, s, server.Parts()...)
	g := client(t, bus, s, server)
	require.Eventually(t, func() bool { return g.do("GET", "/healthz", nil).status == 200 }, servicetest.Wait, 10*time.Millisecond)
	var r api.Ready
	g.do("GET", "/readyz", nil).is(503, &r)
	require.True(t, r.Bus)
	require.Contains(t, strings.Join(r.Reasons, " "), "more than half of its servers must be there")
}

func TestWithoutTheBusReadsGoOnAndWritesSaySo(t *testing.T) {
	t.Parallel()
	g := startWith(t, servicetest.NewBus(t), api.Options{CommandTimeout: 5 * time.Second})
	thread := g.create("Why?")
	g.bus.Server.Shutdown()
	at := "/api/v1/threads/" + thread.ID
	g.do("GET", "/healthz", nil).is(200, nil)
	g.do("GET", at, nil).is(200, nil)
	g.do("GET", at+"/facts", nil).is(200, nil)
	var r api.Ready
	g.do("GET", "/readyz", nil).is(503, &r)
	require.False(t, r.Bus)
	require.Contains(t, r.Reasons, "the message bus does not answer")
	require.Empty(t, r.Provider, "the settings are on the bus: nobody knows whether runs are bought")
	require.Empty(t, r.Model.Engine, "nor which engine is set")
	p := g.do("PATCH", at, `{"title":"x"}`, header("Idempotency-Key", "mine")).refused(503, "outcome-unknown")
	require.Equal(t, "mine", p["idempotency_key"])
	p = g.do("PATCH", at, `{"title":"x"}`).refused(503, "outcome-unknown")
	require.NotEmpty(t, p["idempotency_key"], "one to ask again with is given")
	g.do("POST", "/api/v1/threads", `{"question":"And this?"}`).refused(503, "bus-away")
}

func TestAMethodThatAPathDoesNotTake(t *testing.T) {
	t.Parallel()
	g := start(t)
	for path, methods := range map[string]string{
		"/api/v1/threads": "GET, HEAD, POST, OPTIONS", "/healthz": "GET, HEAD, OPTIONS", "/metrics": "GET, HEAD, OPTIONS", "/": "GET, HEAD, OPTIONS",
		"/api/v1/threads/t/start": "POST, OPTIONS",
	} {
		a := g.do("PUT", path, `{}`)
		a.refused(405, "method-not-allowed")
		require.Equal(t, methods, a.header.Get("Allow"), path)
		options := g.do("OPTIONS", path, nil)
		options.is(204, nil)
		require.Equal(t, methods, options.header.Get("Allow"), path)
		require.Empty(t, options.header.Get("Access-Control-Allow-Origin"))
	}
	g.do("OPTIONS", "/api/v1/nothing", nil).refused(404, "not-found")
	g.do("GET", "/nothing", nil).refused(404, "not-found")
}

func TestABrowserIsToldByAPageWhatIsNotThere(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, path := range []string{"/nothing", "/reports/none"} {
		a := g.do("GET", path, nil, header("Accept", "text/html,*/*;q=0.8"))
		require.Equal(t, 404, a.status)
		require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
		require.Contains(t, string(a.body), `<a href="/">All threads</a>`)
	}
	g.do("GET", "/api/v1/nothing", nil, header("Accept", "text/html")).refused(404, "not-found")
}

// letter keeps a dead letter of a message that is in the stream too, and gives its id.
func (g *gateway) letter(durable, subject, body string) string {
	g.t.Helper()
	ack, err := g.service.JS.Publish(g.t.Context(), subject, []byte(body))
	require.NoError(g.t, err)
	return g.letterOf(durable, subject, body, ack.Sequence)
}

func (g *gateway) letterOf(durable, subject, body string, seq uint64) string {
	g.t.Helper()
	item := dead.Item{Durable: durable, Reason: "bad", Stream: topology.Notebook, StreamSeq: seq, Subject: subject, Data: []byte(body)}
	require.NoError(g.t, dead.Put(g.t.Context(), g.service.JS, item))
	stream, err := g.service.JS.Stream(g.t.Context(), topology.Dead)
	require.NoError(g.t, err)
	g.caughtUp()
	return strconv.FormatUint(stream.CachedInfo().State.LastSeq, 10)
}

func (g *gateway) ready() (r api.Ready) {
	g.t.Helper()
	g.do("GET", "/readyz", nil).is(200, &r)
	return r
}

func TestDeadLettersAreShownAndPutBack(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	g.letter(topology.Distil, "run.completed."+thread.ID+"."+run.ID+".0", "\xffx")
	g.letter(topology.RunsTabstack, "run.requested."+thread.ID+"."+run.ID+".00", "\xffx")
	g.letterOf(topology.Judge, "nonsense", "\xffx", 1000)
	var list api.List[api.DeadLetter]
	g.do("GET", "/api/v1/dead?limit=2", nil).is(200, &list)
	require.Len(t, list.Items, 2)
	require.Equal(t, []string{topology.Distil, "bad", "\uFFFDx"}, []string{list.Items[0].Worker, list.Items[0].Reason, list.Items[0].Data})
	var rest api.List[api.DeadLetter]
	g.do("GET", "/api/v1/dead?cursor="+*list.Next, nil).is(200, &rest)
	require.Len(t, rest.Items, 1)
	g.do("POST", "/api/v1/dead/"+list.Items[1].ID+"/retry", nil).refused(409, "not-retryable")
	p := g.do("POST", "/api/v1/dead/"+rest.Items[0].ID+"/retry", nil).refused(409, "not-retryable")
	require.Contains(t, p["detail"], "POST /api/v1/dead/"+rest.Items[0].ID+"/pass")
	var back api.Retried
	g.do("POST", "/api/v1/dead/"+list.Items[0].ID+"/retry", nil).is(202, &back)
	require.Equal(t, api.Retried{ID: list.Items[0].ID, Thread: thread.ID, Stage: event.StageDistill, Projected: true}, back)
	g.do("POST", "/api/v1/dead/"+list.Items[0].ID+"/retry", nil).refused(404, "not-found")
	var now api.Thread
	g.do("GET", "/api/v1/threads/"+thread.ID, nil).is(200, &now)
	require.Equal(t, []string{"running", "retry"}, []string{now.Status, now.Reason.Code})
}

// Whatever the worker was, a letter can be put back: what the state lacks is asked for, and money is reserved only for a run that came to nothing.
func TestLettersOfEveryWorkerArePutBack(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	at := "/api/v1/threads/" + thread.ID
	reserved := func() int {
		var now api.Thread
		g.do("GET", at, nil).is(200, &now)
		return now.Ledger.Reserved
	}
	tried := map[string]bool{}
	back := func(durable, subject, body string) (v api.Retried) {
		tried[durable] = true
		g.do("POST", "/api/v1/dead/"+g.letter(durable, subject, body)+"/retry", nil).is(202, &v)
		require.Zero(t, g.ready().Dead)
		require.Zero(t, g.ready().BadCount, "nobody has to look at it any more")
		return v
	}
	run := g.run(thread.ID)
	require.Equal(t, event.StageRun, back(topology.RunsTabstack, "run.requested."+thread.ID+"."+run.ID+".0", "x").Stage)
	require.Equal(t, event.StageRun, back(topology.Brief, "run.failed."+thread.ID+"."+run.ID+".0", "x").Stage)
	require.Equal(t, 250, reserved(), "asked for again, not bought again")
	g.complete(thread.ID, run.ID)
	require.Equal(t, event.StageBrief, back(topology.Brief, "contradictions.found."+thread.ID+"."+run.ID+".0", "x").Stage)
	g.append(thread.ID, notebook.WriteBrief{ClosingStep: notebook.ClosingStep{Cycle: 1, N: 1}})
	require.Equal(t, event.StageClose, back(topology.Autopilot, "thread.settled."+thread.ID+".1.1", "x").Stage)
	g.append(thread.ID, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1, N: 2}})
	require.Equal(t, event.StageJudge, back(topology.Judge, "facts.distilled."+thread.ID+"."+run.ID+".0", "x").Stage)
	for _, d := range topology.Durables() {
		if d.Name != topology.Distil {
			require.True(t, tried[d.Name], d.Name)
		}
	}

	// A run that failed is requested anew, once, whoever puts its letter back and how often: both letters are of one message.
	other := g.run(thread.ID)
	g.append(thread.ID, notebook.FailRun{Run: other.ID, Code: event.CodeMalformed, Detail: "It could not be read."})
	subject := "stage.retried." + thread.ID + "." + other.ID + ".1"
	first, second := g.letterOf(topology.RunsTabstack, subject, "x", 5000), g.letterOf(topology.RunsTabstack, subject, "y", 5000)
	require.Equal(t, first, second, "of one worker a message has one letter")
	var again api.Retried
	g.do("POST", "/api/v1/dead/"+first+"/retry", nil, header("Idempotency-Key", "one")).is(202, &again)
	require.Equal(t, event.StageRun, again.Stage)
	require.Equal(t, 250, reserved())
	var asked api.Run
	g.do("GET", "/api/v1/runs/"+again.Run, nil).is(200, &asked)
	require.Equal(t, []any{"requested", "manual", "fast"}, []any{asked.Status, asked.Kind, asked.Mode})

	// What can still be read of a request that nobody could apply is asked; without money it is refused, and the letter stays.
	lost := `{"id":5,"data":{"text":"And what of cost?","mode":"balanced"}}`
	request := g.letter(topology.RunsTabstack, "run.requested."+thread.ID+".never.0", lost)
	g.do("PATCH", at, `{"budget":600}`).is(200, nil)
	p := g.do("POST", "/api/v1/dead/"+request+"/retry", nil).refused(402, "budget-exceeded")
	require.Contains(t, p["detail"], "/pass")
	g.do("PATCH", at, `{"budget":2000}`).is(200, nil)
	g.do("POST", "/api/v1/dead/"+request+"/retry", nil).is(202, &again)
	require.Equal(t, 600, reserved())
	g.do("GET", "/api/v1/runs/"+again.Run, nil).is(200, &asked)
	require.Equal(t, "balanced", asked.Mode)

	for subject, want := range map[string]int{
		"run.requested." + thread.ID + ".never.0": 409, "run.requested." + thread.ID + "." + run.ID + ".0": 202, "run.requested.nobody.r.0": 404,
	} {
		require.Equal(t, want, g.do("POST", "/api/v1/dead/"+g.letter(topology.RunsTabstack, subject, "x")+"/retry", nil).status, subject)
	}
}

func TestWhatNobodyCanReadIsPassed(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	// One message with letters of two workers, one that no worker reads, one of a newer version, and somebody else's.
	subject := "stage.retried." + thread.ID + ".poisoned.0"
	first := g.letter(topology.Distil, subject, "x")
	var list api.List[api.DeadLetter]
	g.do("GET", "/api/v1/dead", nil).is(200, &list)
	g.letterOf(topology.Judge, subject, "x", list.Items[0].Seq)
	for subject, body := range map[string]string{
		"thread.paused." + thread.ID + ".0.0": "x",
		"run.failed." + thread.ID + ".r.0":    `{"id":"e1","type":"factstream.run.failed.v99","thread":"` + thread.ID + `","n":0,"data":{}}`,
		"ext.note." + thread.ID + ".0.0":      `{"id":"e2"}`,
	} {
		_, err := g.service.JS.Publish(t.Context(), subject, []byte(body))
		require.NoError(t, err)
	}
	g.caughtUp()
	r := g.ready()
	require.EqualValues(t, 2, r.Dead)
	require.Equal(t, 3, r.BadCount)

	var passed api.Passed
	g.do("POST", "/api/v1/dead/"+first+"/pass", nil).is(200, &passed)
	require.Equal(t, api.Passed{Seq: list.Items[0].Seq, Letters: 2}, passed, "the message is let be, for every worker")
	g.do("POST", "/api/v1/dead/"+first+"/pass", nil).refused(404, "not-found")
	r = g.ready()
	require.Zero(t, r.Dead)
	require.Equal(t, 2, r.BadCount)
	for _, bad := range r.BadEvents {
		for range 2 { // again is nothing new
			g.do("POST", fmt.Sprintf("/api/v1/bad-events/%d/pass", bad.Seq), nil).is(200, &passed)
			require.Equal(t, api.Passed{Seq: bad.Seq}, passed)
		}
	}
	r = g.ready()
	require.Zero(t, r.BadCount)
	require.Empty(t, r.BadEvents)
	require.Contains(t, string(g.do("GET", "/metrics", nil).body), "factstream_bad_events 0")
	for _, seq := range []string{"1", "0", "999", "x", "-1", "99999999999999999999"} { // the first is the thread's creation, and fine
		g.do("POST", "/api/v1/bad-events/"+seq+"/pass", nil).refused(404, "not-found")
	}
	stream, err := g.service.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	_, err = stream.GetMsg(t.Context(), list.Items[0].Seq)
	require.NoError(t, err, "the message stays")
}

func TestAnAccessTokenGuardsEverythingButHealth(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *config.Config) { c.Token = "t0ken" })
	g.do("GET", "/healthz", nil).is(200, nil)
	for _, path := range []string{"/api/v1/threads", "/readyz", "/metrics", "/openapi.json", "/api/v1/events", "/nothing"} {
		g.do("GET", path, nil).refused(401, "token-required")
		require.NotEqual(t, 401, g.do("HEAD", path, nil, header("Authorization", "bearer t0ken")).status, path)
	}
	g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header("Authorization", "Bearer wrong")).refused(401, "token-required")
	g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header("Authorization", "Bearer t0ken"), header("Host", "notebook.example")).is(201, nil)

	page := g.do("GET", "/", nil)
	require.Equal(t, 401, page.status)
	require.Contains(t, string(page.body), `action="/login"`)
	form := header("Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, 401, g.do("POST", "/login", "token=wrong", form).status)
	in := g.do("POST", "/login", "token=t0ken", form)
	require.Equal(t, 303, in.status)
	cookie := in.header.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly; SameSite=Strict")
	require.NotContains(t, cookie, "t0ken")
	value, _, _ := strings.Cut(cookie, ";")
	g.do("GET", "/api/v1/threads", nil, header("Cookie", value)).is(200, nil)
	require.Equal(t, 200, g.do("GET", "/", nil, header("Cookie", value)).status)
	g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header("Cookie", value), header("Origin", "https://evil.example")).refused(403, "cross-origin")
}

func TestThePageLoadsNothingFromElsewhereAndHostileTextStaysText(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("<script>alert('q')</script>")
	run := g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	for path, kind := range map[string]string{"/": "text/html", "/assets/app.js": "text/javascript", "/assets/style.css": "text/css", "/assets/icon.svg": "image/svg+xml", "/reports/" + run.ID: "text/html"} {
		a := g.do("GET", path, nil)
		require.Equal(t, 200, a.status, path)
		require.Contains(t, a.header.Get("Content-Type"), kind)
		require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Equal(t, "DENY", a.header.Get("X-Frame-Options"))
		require.NotRegexp(t, `(src|@import|url\()=?["'(]?\s*(https?:)?//`, string(a.body), path)
	}
	for _, path := range []string{"/assets/report.html", "/assets/login.html", "/assets/web.go", "/assets/..%2fweb.go", "/else"} {
		require.Equal(t, 404, g.do("GET", path, nil).status, path)
	}
	html := string(g.do("GET", "/reports/"+run.ID, nil).body)
	require.NotContains(t, html, "<script")
	require.NotContains(t, html, `="javascript:`)
	require.NotContains(t, html, "<b>Title</b>")
	require.Contains(t, html, "&lt;script&gt;alert(&#39;q&#39;)")
	require.Contains(t, html, "&lt;script&gt;alert(1)&lt;/script&gt; [bad]", "what stands in the report can be read")
	require.Contains(t, html, `<a href="https://example.org/b" target="_blank" rel="noopener noreferrer nofollow" dir="auto">&lt;b&gt;Title&lt;/b&gt;</a>`)
	require.Contains(t, html, `<li value="3" id="page-3"><bdi>&lt;b&gt;Title&lt;/b&gt;</bdi></li>`, "an address that is none of the web is no link")
	require.Equal(t, 404, g.do("GET", "/reports/zzz", nil).status)
	g.do("GET", "/api/v1/threads", nil)
	require.Equal(t, "no-store", g.do("GET", "/api/v1/threads", nil).header.Get("Cache-Control"))
}

func TestTheAPIDescribesItself(t *testing.T) {
	t.Parallel()
	g := start(t)
	var doc struct {
		OpenAPI string                               `json:"openapi"`
		Paths   map[string]map[string]map[string]any `json:"paths"`
	}
	a := g.do("GET", "/openapi.json", nil)
	a.is(200, &doc)
	require.Equal(t, "3.1.0", doc.OpenAPI)
	for _, want := range []string{
		"post /threads", "get /threads", "get /threads/{thread}", "patch /threads/{thread}", "delete /threads/{thread}", "post /threads/{thread}/start",
		"post /threads/{thread}/pause", "post /threads/{thread}/rebuild", "post /threads/{thread}/runs", "get /threads/{thread}/runs", "get /runs/{run}",
		"delete /runs/{run}", "post /runs/{run}/cancel", "get /runs/{run}/report", "get /runs/{run}/trail", "post /runs/{run}/stages/{stage}/retry",
		"get /threads/{thread}/facts", "get /facts/{fact}", "get /threads/{thread}/sources", "get /threads/{thread}/questions", "post /threads/{thread}/questions",
		"patch /questions/{question}", "delete /questions/{question}", "get /threads/{thread}/contradictions", "get /threads/{thread}/brief",
		"get /threads/{thread}/coverage", "get /events", "get /settings", "put /settings", "get /dead", "post /dead/{id}/retry",
		"post /dead/{id}/pass", "post /bad-events/{seq}/pass",
	} {
		method, path, _ := strings.Cut(want, " ")
		require.Contains(t, doc.Paths["/api/v1"+path], method, want)
	}
	require.Contains(t, string(a.body), "application/problem+json")
	require.Contains(t, doc.Paths, "/readyz")
	require.NotContains(t, string(a.body), "$schema")
}

// Facts of two threads that say the same know of each other, until one of the threads is deleted.
func TestSeenElsewhereAsLongAsTheOtherThreadIsThere(t *testing.T) {
	t.Parallel()
	g := start(t)
	first, second := g.create("Why?"), g.create("How?")
	for _, thread := range []string{first.ID, second.ID} {
		run := g.run(thread)
		g.append(thread, notebook.StartAttempt{Run: run.ID, Max: 3})
		g.append(thread, notebook.CompleteRun{Run: run.ID, Completed: gatewaytest.Completed(thread)})
		fact := gatewaytest.Fact(thread, gatewaytest.Statements[0], gatewaytest.URLs[0], nil)
		g.append(thread, notebook.Distil{Run: run.ID, Facts: []event.Fact{fact}, Engine: "extractive"})
		judged := notebook.Judge{Run: run.ID, Engine: "extractive"}
		if thread == second.ID {
			judged.Verdicts = []event.Verdict{{
				Elder: gatewaytest.FactIDs(first.ID)[0], ElderThread: first.ID, ElderFingerprint: fact.Fingerprint,
				Newer: fact.ID, NewerFingerprint: fact.Fingerprint, Relation: event.Duplicate,
			}}
		}
		g.append(thread, judged)
	}
	g.caughtUp()
	elsewhere := func(thread string) []api.Elsewhere {
		var facts api.List[api.Fact]
		g.do("GET", "/api/v1/threads/"+thread+"/facts", nil).is(200, &facts)
		require.Len(t, facts.Items, 1)
		return facts.Items[0].SeenElsewhere
	}
	require.Equal(t, []api.Elsewhere{{Fact: gatewaytest.FactIDs(first.ID)[0], Thread: first.ID, Relation: "duplicate"}}, elsewhere(second.ID))
	require.Equal(t, []api.Elsewhere{{Fact: gatewaytest.FactIDs(second.ID)[0], Thread: second.ID, Relation: "duplicate"}}, elsewhere(first.ID))
	g.do("DELETE", "/api/v1/threads/"+first.ID, nil).is(200, nil)
	require.Empty(t, elsewhere(second.ID))
}

// Two facts that are distinct and yet of the same thing name each other, as long as both stand; so do a brief and what it withholds.
func TestRelatedFactsNameEachOther(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	g.append(thread.ID, notebook.CompleteRun{Run: run.ID, Completed: gatewaytest.Completed(thread.ID)})
	var facts []event.Fact
	for i := range 3 {
		facts = append(facts, gatewaytest.Fact(thread.ID, gatewaytest.Statements[i], gatewaytest.URLs[0], nil))
	}
	verdict := func(elder, newer event.Fact, relation string, related bool) event.Verdict {
		return event.Verdict{
			Elder: elder.ID, ElderFingerprint: elder.Fingerprint, Newer: newer.ID, NewerFingerprint: newer.Fingerprint, Relation: relation, Related: related,
		}
	}
	g.append(thread.ID, notebook.Distil{Run: run.ID, Facts: facts, Engine: "extractive"})
	g.append(thread.ID, notebook.Judge{Run: run.ID, Engine: "extractive", Verdicts: []event.Verdict{
		verdict(facts[0], facts[1], event.Distinct, true), verdict(facts[0], facts[2], event.Distinct, false),
	}})
	g.append(thread.ID, notebook.ProposeQuestions{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	g.append(thread.ID, notebook.WriteBrief{
		ClosingStep: notebook.ClosingStep{Cycle: 1}, Brief: event.BriefWritten{Engine: "extractive", Withheld: []string{facts[2].ID}},
	})
	g.caughtUp()
	related := func() map[string][]string {
		var list api.List[api.Fact]
		g.do("GET", "/api/v1/threads/"+thread.ID+"/facts", nil).is(200, &list)
		all := map[string][]string{}
		for _, f := range list.Items {
			all[f.ID] = f.Related
		}
		return all
	}
	require.Equal(t, map[string][]string{facts[0].ID: {facts[1].ID}, facts[1].ID: {facts[0].ID}, facts[2].ID: {}}, related())
	for _, at := range []string{"/brief", "/brief?history=true"} {
		require.Contains(t, string(g.do("GET", "/api/v1/threads/"+thread.ID+at, nil).body), `"withheld":["`+facts[2].ID+`"]`)
	}
}

// A page that was cited again in a later version does not date what was taken from the earlier one.
func TestAFactHasTheDateThatItsOwnCitationGives(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("When does it start?")
	const url = "https://a.example/roadmap"
	id := notebook.SourceID(thread.ID, url)
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		statement string
		published *time.Time
	}{{"It starts in 2027.", nil}, {"It starts in 2030.", &day}} {
		run := g.run(thread.ID)
		page := event.Page{N: 1, URL: url, Canonical: url, Source: id, PublishedAt: c.published}
		g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Holder: "test", Max: 3})
		g.append(thread.ID, notebook.CompleteRun{Run: run.ID, Completed: event.RunCompleted{
			Attempt: 1, Cost: run.Cost, Report: event.Blob{Text: c.statement + " [1]"}, Pages: []event.Page{page},
		}})
		print := text.Fingerprint(c.statement)
		source := &event.Source{ID: id, URL: url, Canonical: url, Site: "a.example", PublishedAt: c.published}
		g.append(thread.ID, notebook.Distil{Run: run.ID, Engine: "extractive", Facts: []event.Fact{
			{ID: notebook.FactID(thread.ID, print), Fingerprint: print, Statement: c.statement, Confidence: 0.5, Source: source},
		}})
		g.append(thread.ID, notebook.Judge{Run: run.ID, Engine: "extractive"})
		n := 0
		g.service.Tail.View(thread.ID, func(th *notebook.Thread) { n = len(th.Cycles) })
		step := notebook.ClosingStep{Cycle: n}
		g.append(thread.ID, notebook.ProposeQuestions{ClosingStep: step})
		g.append(thread.ID, notebook.WriteBrief{ClosingStep: step})
		g.append(thread.ID, notebook.MapCoverage{ClosingStep: step})
		g.append(thread.ID, notebook.Settle{ClosingStep: step})
	}
	g.caughtUp()
	var facts struct{ Items []api.Fact }
	g.do("GET", "/api/v1/threads/"+thread.ID+"/facts", nil).is(200, &facts)
	require.Len(t, facts.Items, 2)
	for _, f := range facts.Items {
		if f.Statement == "It starts in 2027." {
			require.Nil(t, f.Source.PublishedAt, "the page gave none then")
		} else {
			require.True(t, day.Equal(*f.Source.PublishedAt))
		}
	}
	var sources struct{ Items []api.Source }
	g.do("GET", "/api/v1/threads/"+thread.ID+"/sources", nil).is(200, &sources)
	require.Len(t, sources.Items, 1)
	require.True(t, day.Equal(*sources.Items[0].PublishedAt), "the thread's sources say what is known of the page")
}
