package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/shared/event"
)

func TestTheThreeLinesOfTheGreetingGiveAThreadWithCitedFacts(t *testing.T) {
	t.Parallel()
	c := start(t)
	greeting := c.stdout.String()
	require.Contains(t, greeting, "replay: recorded runs on solid-state batteries are played")
	require.Contains(t, greeting, "extractive: rules, no language model")

	_, rest, _ := strings.Cut(greeting, "Try next:")
	script, _, _ := strings.Cut(rest, "Ctrl-C")
	require.Equal(t, 3, strings.Count(script, "curl -s"))
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, unindented(strings.ReplaceAll(string(readme), "http://127.0.0.1:8080", c.url)), unindented(script), "the README has the same lines")
	c.shell(script)
	threads := all[thread](c.api, "/threads")
	require.Len(t, threads, 1)
	id := threads[0].ID
	last := script[strings.LastIndex(script, "curl -s"):]
	eventually(t, "the last line shows facts", func() bool {
		return strings.Contains(c.shell(last, "T="+id), `"statement"`)
	})

	first := c.settled(id)
	require.Equal(t, "idle", first.Status)
	require.Equal(t, "auto_off", first.Reason.Code)
	require.Greater(t, len(strings.Fields(first.Reason.Text)), 3, "the reason is in words: %q", first.Reason.Text)
	require.True(t, *first.Replay)
	c.researched(id, map[string]any{"mode": "balanced"})

	now := c.spent(id, 600)
	require.Equal(t, "idle", now.Status)
	require.Nil(t, now.KnowledgeError)
	runs := all[run](c.api, "/threads/"+id+"/runs")
	require.Len(t, runs, 2)
	for i, mode := range []string{"fast", "balanced"} {
		r := c.completed(runs[i].ID, 1)
		require.Equal(t, mode, r.Mode)
		require.True(t, r.Replayed)
	}
	facts := c.factsOf(id)
	require.Len(t, facts, now.Counts.Facts)
	c.citedLiterally(id, facts, runs)
	c.briefCitesOnly(id, facts)
	c.coverageIsOf(id, facts)

	questions := all[question](c.api, "/threads/"+id+"/questions")
	require.Len(t, questions, now.Counts.Questions)
	require.True(t, slices.ContainsFunc(questions, func(q question) bool { return q.Status == "answered" && q.Text == now.Question }))
	require.True(t, slices.ContainsFunc(questions, func(q question) bool { return q.Status == "pending" && q.Origin == "ai" && q.Position != nil }), "%+v", questions)

	c.eventsAreWhole(now)
	c.pagesAnswer(now)

	c.signal(os.Interrupt)
	require.Zero(t, c.exit())
	c.quiet()
}

// unindented makes what is set in a column comparable with what is not.
func unindented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// shell runs lines of the greeting and gives what they print.
func (c *cluster) shell(script string, env ...string) string {
	c.t.Helper()
	command := exec.Command("sh", "-eu", "-c", script)
	command.Env = append(append(os.Environ(), "PATH="+shims+string(os.PathListSeparator)+os.Getenv("PATH")), env...)
	output, err := command.CombinedOutput()
	require.NoError(c.t, err, "%s\n%s", script, output)
	return string(output)
}

// factsOf reads the active facts of a thread.
func (a *api) factsOf(thread string) []fact {
	a.t.Helper()
	facts := all[fact](a, "/threads/"+thread+"/facts?limit=500")
	require.NotEmpty(a.t, facts)
	return facts
}

// citedLiterally asserts that every fact stands in the report of its run, and that its source is a page which the provider cited there.
func (c *cluster) citedLiterally(thread string, facts []fact, runs []run) {
	c.t.Helper()
	reports, cited, mode := map[string]string{}, map[string][]string{}, map[string]string{}
	for _, r := range runs {
		reports[r.ID], mode[r.ID] = c.report(r.ID), r.Mode
		report, pages := recorded(c.t, r.Mode)
		require.Equal(c.t, report, reports[r.ID], "the report is kept as it came")
		cited[r.Mode] = pages
	}
	sources := map[string]source{}
	for _, s := range all[source](c.api, "/threads/"+thread+"/sources?limit=500") {
		sources[s.ID] = s
	}
	sourced := 0
	for _, f := range facts {
		report := reports[f.Run]
		require.NotEmpty(c.t, report, "%q is of run %q", f.Statement, f.Run)
		require.NotNil(c.t, f.Excerpt, f.Statement)
		require.NotEmpty(c.t, f.Excerpt.Text)
		require.LessOrEqual(c.t, f.Excerpt.End, len(report))
		require.Equal(c.t, report[f.Excerpt.Start:f.Excerpt.End], f.Excerpt.Text, f.Statement)
		require.Equal(c.t, "extractive", f.Engine)
		require.True(c.t, f.Replayed)
		require.True(c.t, f.Confidence > 0 && f.Confidence <= 1, "%v", f.Confidence)
		if f.Source == nil {
			continue
		}
		sourced++
		require.Contains(c.t, sources[f.Source.ID].Runs, f.Run, f.Statement)
		require.Contains(c.t, slices.Concat(cited["fast"], cited["balanced"]), f.Source.URL, "a URL as the provider cited it first")
	}
	require.Greater(c.t, sourced, len(facts)/2, "most facts have a source")
}

// recorded reads the report and the cited URLs of a recorded run.
func recorded(t *testing.T, mode string) (report string, urls []string) {
	t.Helper()
	stream, err := fixtures.Stream("tabstack", mode)
	require.NoError(t, err)
	_, data, found := bytes.Cut(stream, []byte("event: complete\ndata: "))
	require.True(t, found)
	data, _, _ = bytes.Cut(data, []byte("\n"))
	var complete struct {
		Report   string
		Metadata struct {
			CitedPages []struct{ URL string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &complete))
	for _, page := range complete.Metadata.CitedPages {
		urls = append(urls, page.URL)
	}
	return complete.Report, urls
}

// briefCitesOnly asserts that the brief speaks of facts that there are, and states nothing as settled that is disputed.
func (c *cluster) briefCitesOnly(thread string, facts []fact) {
	c.t.Helper()
	disputed := map[string]bool{}
	for _, f := range facts {
		disputed[f.ID] = f.Disputed
	}
	contradictions := all[contradiction](c.api, "/threads/"+thread+"/contradictions")
	require.NotEmpty(c.t, contradictions, "the two recorded reports contradict each other")
	open := map[string]bool{}
	for _, found := range contradictions {
		open[found.ID] = true
		require.True(c.t, disputed[found.A.ID] && disputed[found.B.ID], "both sides stay and are disputed")
		require.NotEmpty(c.t, found.Reason)
	}
	b := call[brief](c.api, http.StatusOK, http.MethodGet, base+"/threads/"+thread+"/brief", nil)
	require.Equal(c.t, "extractive", b.Engine)
	require.NotEmpty(c.t, b.Findings)
	for _, sentence := range slices.Concat(b.Findings, b.Relationships) {
		require.NotEmpty(c.t, sentence.Facts, sentence.Text)
		for _, id := range sentence.Facts {
			require.Contains(c.t, disputed, id, "%q cites what is not there", sentence.Text)
			require.False(c.t, disputed[id], "%q states as settled what is disputed", sentence.Text)
		}
	}
	require.Len(c.t, b.Disputed, len(contradictions))
	for _, sentence := range b.Disputed {
		require.True(c.t, open[sentence.Contradiction], sentence.Text)
	}
	require.Contains(c.t, b.Markdown, b.Findings[0].Text)
}

func (c *cluster) coverageIsOf(thread string, facts []fact) {
	c.t.Helper()
	known := map[string]bool{}
	for _, f := range facts {
		known[f.ID] = true
	}
	topics := call[coverage](c.api, http.StatusOK, http.MethodGet, base+"/threads/"+thread+"/coverage", nil).Topics
	require.NotEmpty(c.t, topics)
	for _, topic := range topics {
		require.NotEmpty(c.t, topic.Name)
		require.Equal(c.t, topic.Facts < 3, topic.Thin, topic.Name)
		require.Len(c.t, topic.FactIDs, topic.Facts)
		for _, id := range topic.FactIDs {
			require.True(c.t, known[id], "%s holds a fact that is not there", topic.Name)
		}
	}
}

// eventsAreWhole asserts that the stream of events holds every change from the first on, in order, each of a known type.
func (c *cluster) eventsAreWhole(now thread) {
	c.t.Helper()
	kinds := map[string]int{}
	for i, n := range c.follow().until(now.Position) {
		require.Equal(c.t, uint64(i+1), n.Seq, "no event is left out, none comes twice")
		require.Contains(c.t, event.Types(), n.Type)
		require.Equal(c.t, now.ID, n.Thread)
		kinds[n.kind()]++
	}
	for kind, times := range map[string]int{
		"thread.created": 1, "run.requested": 2, "attempt.started": 2, "run.completed": 2, "facts.distilled": 2, "contradictions.found": 2,
		"questions.proposed": 2, "brief.written": 2, "coverage.mapped": 2, "thread.settled": 2, "thread.parked": 1,
	} {
		require.Equal(c.t, times, kinds[kind], "%s in %v", kind, kinds)
	}
}

// pagesAnswer asserts that what is read by eye or by program is there: page, contract, metrics.
func (c *cluster) pagesAnswer(now thread) {
	c.t.Helper()
	get := func(path string) (string, http.Header) {
		response, err := client.Get(c.url + path)
		require.NoError(c.t, err)
		defer response.Body.Close() //nolint:errcheck // only read
		require.Equal(c.t, http.StatusOK, response.StatusCode, path)
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		require.NoError(c.t, err)
		return body.String(), response.Header
	}
	page, header := get("/")
	require.Contains(c.t, header.Get("Content-Type"), "text/html")
	require.Contains(c.t, header.Get("Content-Security-Policy"), "default-src")
	require.Contains(c.t, strings.ToLower(page), "<!doctype html>")

	text, _ := get("/openapi.json")
	var contract struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	require.NoError(c.t, json.Unmarshal([]byte(text), &contract))
	require.True(c.t, strings.HasPrefix(contract.OpenAPI, "3.1"), contract.OpenAPI)
	for path, methods := range map[string][]string{
		"/threads": {"get", "post"}, "/threads/{}": {"get", "patch", "delete"}, "/threads/{}/start": {"post"}, "/threads/{}/pause": {"post"},
		"/threads/{}/runs": {"get", "post"}, "/runs/{}": {"get", "delete"}, "/runs/{}/cancel": {"post"}, "/runs/{}/report": {"get"},
		"/runs/{}/trail": {"get"}, "/threads/{}/facts": {"get"}, "/facts/{}": {"get"}, "/threads/{}/sources": {"get"},
		"/threads/{}/questions": {"get", "post"}, "/questions/{}": {"patch", "delete"}, "/threads/{}/contradictions": {"get"},
		"/threads/{}/brief": {"get"}, "/threads/{}/coverage": {"get"}, "/runs/{}/stages/{}/retry": {"post"}, "/events": {"get"},
		"/settings": {"get", "put"}, "/dead": {"get"}, "/dead/{}/retry": {"post"},
	} {
		require.Subset(c.t, operations(contract.Paths, base+path), methods, path)
	}
	metrics, _ := get("/metrics")
	require.Contains(c.t, metrics, "factstream_")
	_, _ = get("/healthz")
	ready, _ := get("/readyz")
	require.Contains(c.t, ready, `"mode":"replay"`)
	require.FileExists(c.t, filepath.Join(c.data, "notebook.db"))
	require.NotZero(c.t, now.Position)
}

// operations lists the methods of a path of the contract; {} stands for a parameter of any name.
func operations(paths map[string]map[string]any, wanted string) (methods []string) {
	for path, item := range paths {
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				parts[i] = "{}"
			}
		}
		if strings.Join(parts, "/") == wanted {
			for method := range item {
				methods = append(methods, method)
			}
		}
	}
	return methods
}
