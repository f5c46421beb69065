package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestMain(m *testing.M) {
	testenv.Clear()
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// gateway is a running gateway with a bus of its own, and a client.
type gateway struct {
	t       testing.TB
	bus     *servicetest.Bus
	service *service.Service
	url     string
	header  http.Header // of every request

	transport *http.Transport
}

func start(t testing.TB, change ...func(*config.Config)) *gateway {
	t.Helper()
	bus := servicetest.NewBus(t)
	return startOn(t, bus, change...)
}

func startOn(t testing.TB, bus *servicetest.Bus, change ...func(*config.Config)) *gateway {
	t.Helper()
	return startWith(t, bus, api.Options{CommandTimeout: servicetest.Wait, ProjectionWait: servicetest.Wait}, change...)
}

// startWith starts a gateway that waits as long as options say, where that is what a test is about.
func startWith(t testing.TB, bus *servicetest.Bus, options api.Options, change ...func(*config.Config)) *gateway {
	t.Helper()
	s := bus.Open("gateway", append([]func(*config.Config){func(c *config.Config) { c.HTTP = "127.0.0.1:0" }}, change...)...)
	server, err := api.Open(t.Context(), s, options)
	require.NoError(t, err)
	servicetest.Run(t, s, server.Parts()...)
	return client(t, bus, s, server)
}

func client(t testing.TB, bus *servicetest.Bus, s *service.Service, server *api.Server) *gateway {
	g := &gateway{t: t, bus: bus, service: s, url: "http://" + server.Addr(), header: http.Header{}, transport: &http.Transport{}}
	t.Cleanup(g.transport.CloseIdleConnections)
	return g
}

// answer is what came of a request.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

func (g *gateway) do(method, path string, body any, change ...func(*http.Request)) answer {
	g.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case io.Reader:
		content = b
	case string:
		content = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		require.NoError(g.t, err)
		content = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), servicetest.Wait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, content)
	require.NoError(g.t, err)
	r.Header = g.header.Clone()
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	client := &http.Client{Transport: g.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	require.NoError(g.t, err)
	defer response.Body.Close() //nolint:errcheck // only read
	read, err := io.ReadAll(response.Body)
	require.NoError(g.t, err)
	a := answer{g.t, response.StatusCode, response.Header, read}
	if c := described(g.t, g); method != http.MethodOptions && c.at(path) != "" { // no test meets a status that the description does not know
		c.declares(method, c.at(path), a)
	}
	return a
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if name == "Host" {
			r.Host = value
			return
		}
		r.Header.Set(name, value)
	}
}

// is reads the body when the status is right.
func (a answer) is(status int, into any) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	if into != nil {
		require.NoError(a.t, json.Unmarshal(a.body, into), "%s", a.body)
	}
}

// refused gives the problem when status and type are right.
func (a answer) refused(status int, code string) map[string]any {
	a.t.Helper()
	var problem map[string]any
	a.is(status, &problem)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(a.t, "urn:factstream:problem:"+code, problem["type"], "%s", a.body)
	require.NotEmpty(a.t, problem["detail"])
	require.EqualValues(a.t, status, problem["status"])
	return problem
}

func (g *gateway) create(question string) api.Thread {
	g.t.Helper()
	var thread api.Thread
	g.do("POST", "/api/v1/threads", map[string]any{"question": question, "auto": false}).is(201, &thread)
	return thread
}

func (g *gateway) run(thread string) api.Run {
	g.t.Helper()
	var run api.Run
	g.do("POST", "/api/v1/threads/"+thread+"/runs", nil).is(202, &run)
	return run
}

func (g *gateway) append(thread string, cmd notebook.Command) {
	g.t.Helper()
	servicetest.Append(g.t, g.service, thread, cmd)
}

// complete does what the other services do for a run, up to a settled cycle.
func (g *gateway) complete(thread, run string) {
	g.t.Helper()
	gatewaytest.Complete(g.t, g.service, thread, run)
	g.caughtUp()
}

// progress shows what a step does, and waits until it can be read.
func (g *gateway) progress(thread, entity, stage string, state progress.State) {
	g.t.Helper()
	g.service.Progress.Write(g.t.Context(), thread, entity, stage, state)
	require.Eventually(g.t, func() bool {
		entries, err := g.service.Progress.Read(g.t.Context(), thread)
		return err == nil && slices.Contains(entries, progress.Entry{Entity: entity, Stage: stage, State: state})
	}, servicetest.Wait, 5*time.Millisecond)
}

// caughtUp waits until reads see everything that was appended.
func (g *gateway) caughtUp() {
	g.t.Helper()
	last, err := g.service.Tail.CatchUp(g.t.Context())
	require.NoError(g.t, err)
	require.Eventually(g.t, func() bool {
		var ready api.Ready
		require.NoError(g.t, json.Unmarshal(g.do("GET", "/readyz", nil).body, &ready))
		return ready.Projection.Position >= last
	}, servicetest.Wait, 5*time.Millisecond)
}

func TestAThreadFromQuestionToBrief(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("How dense are solid-state cells?")
	require.Equal(t, "new", thread.Status)
	require.Equal(t, 2000, thread.Ledger.Budget)
	require.NotNil(t, thread.Projected)
	require.True(t, *thread.Projected)

	run := g.run(thread.ID)
	require.Equal(t, "requested", run.Status)
	require.True(t, run.Replayed)
	require.Equal(t, 250, run.Cost)
	var now api.Thread
	at := "/api/v1/threads/" + thread.ID
	g.do("GET", at, nil).is(200, &now)
	require.Equal(t, "running", now.Status)
	require.Equal(t, 250, now.Ledger.Reserved)
	require.Equal(t, "manual", now.Reason.Code)

	g.complete(thread.ID, run.ID)
	g.do("GET", at, nil).is(200, &now)
	require.Equal(t, "idle", now.Status)
	require.Equal(t, "auto_off", now.Reason.Code)
	require.Equal(t, api.Ledger{Budget: 2000, Spent: 250}, now.Ledger)
	require.Equal(t, api.Counts{Runs: 1, Facts: 3, Sources: 2, Questions: 3, Contradictions: 1}, now.Counts)
	require.True(t, *now.Replay)

	var one api.Run
	g.do("GET", "/api/v1/runs/"+run.ID, nil).is(200, &one)
	require.Equal(t, "completed", one.Status)
	require.JSONEq(t, `{"mode":"fast"}`, string(one.Metadata))
	require.Equal(t, 2, one.FactsLeftOut)
	require.Equal(t, 1, one.UnresolvedMarkers)
	require.Len(t, one.Attempts, 1)
	require.Equal(t, "completed", one.Attempts[0].Outcome)
	for _, s := range one.Stages {
		require.Equal(t, "done", s.State, s.Name)
		require.Equal(t, "extractive", s.Engine, s.Name)
	}

	var facts api.List[api.Fact]
	g.do("GET", at+"/facts", nil).is(200, &facts)
	require.Len(t, facts.Items, 3)
	first := facts.Items[0]
	require.Equal(t, gatewaytest.URLs[0], first.Source.URL)
	require.True(t, first.Disputed)
	require.True(t, first.Stale, "its source is of 2020")
	require.Equal(t, time.Date(2020, 11, 1, 0, 0, 0, 0, time.UTC), *first.StaleSince, "six months after the date of its only page")
	require.False(t, facts.Items[1].Stale || facts.Items[1].StaleSince != nil, "it was read just now, and its page has no date")
	require.Equal(t, api.Support{Pages: 1, Sites: 1, Sources: []api.FactSource{*first.Source}}, first.Support)
	require.Equal(t, first.Excerpt.Text, gatewaytest.Report[first.Excerpt.Start:first.Excerpt.End])
	require.Nil(t, facts.Items[2].Source)

	var brief api.Brief
	g.do("GET", at+"/brief", nil).is(200, &brief)
	require.Equal(t, []string{first.ID}, brief.Findings[0].Facts)
	var briefs api.List[api.Brief]
	g.do("GET", at+"/brief?history=true", nil).is(200, &briefs)
	require.Equal(t, []api.Brief{brief}, briefs.Items)
	var coverage api.Coverage
	g.do("GET", at+"/coverage", nil).is(200, &coverage)
	require.True(t, coverage.Topics[0].Thin)
	var contradictions api.List[api.Contradiction]
	g.do("GET", at+"/contradictions", nil).is(200, &contradictions)
	require.Equal(t, "other figure", contradictions.Items[0].Reason)
	var sources api.List[api.Source]
	g.do("GET", at+"/sources", nil).is(200, &sources)
	require.Len(t, sources.Items, 2)
	require.Equal(t, 1, sources.Items[0].CitedCount)

	got := g.do("GET", "/api/v1/runs/"+run.ID+"/report", nil)
	got.is(200, nil)
	require.Equal(t, "text/markdown; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, gatewaytest.Report, string(got.body))
}
