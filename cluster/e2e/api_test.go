package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// api asks a gateway over HTTP.
type api struct {
	t   *testing.T
	url string
}

// base is where the contract's paths begin.
const base = "/api/v1"

// What the contract says things look like, as far as it is asserted here.
type (
	thread struct {
		ID       string
		Question string
		Status   string
		Reason   struct{ Code, Text string }
		Replay   *bool
		Ledger   struct{ Budget, Spent, Reserved int }
		Counts   struct{ Runs, Facts, Sources, Questions, Contradictions int }
		Cycle    int
		Position uint64

		KnowledgeError *struct{ Stage, Reason string } `json:"knowledge_error"`
	}
	run struct {
		ID, Thread, Question, Kind, Status, Mode string
		Replayed                                 bool
		Cost                                     int
		Attempts                                 []struct {
			N       int
			Outcome string
		}
		Failure *struct{ Code, Detail string }
		Stages  []struct{ Name, State, Engine, Error string }
	}
	source struct {
		ID, URL string
		Runs    []string
	}
	fact struct {
		ID, Run, Statement, Engine string
		Confidence                 float64
		Source                     *source
		Excerpt                    *struct {
			Start, End int
			Text       string
		}
		Disputed    bool
		Replayed    bool
		DuplicateOf *string `json:"duplicate_of"`
	}
	question struct {
		ID, Text, Origin, Status string
		Position                 *int
	}
	contradiction struct {
		ID, Reason string
		A, B       fact
	}
	cited struct {
		Text  string
		Facts []string
	}
	brief struct {
		Findings, Relationships []cited
		Disputed                []struct{ Text, Contradiction string }
		Gaps                    []string
		Markdown, Engine        string
	}
	coverage struct {
		Topics []struct {
			ID, Name string
			Facts    int
			FactIDs  []string `json:"fact_ids"`
			Thin     bool
		}
	}
	refusal struct {
		Type, Detail                  string
		Spent, Reserved, Cost, Budget *int
	}
	list[T any] struct {
		Items []T
		Next  *string
	}
)

// client has no timeout for the events, which never end; everything else is bounded by the test's own.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// try sends a request with a JSON body, unless that is nil; header holds pairs.
func (a *api) try(method, path string, body any, header ...string) (status int, answer []byte, err error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, content)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// call sends a request that must be answered with the status, and decodes the answer.
func call[T any](a *api, status int, method, path string, body any, header ...string) (answer T) {
	a.t.Helper()
	got, text, err := a.try(method, path, body, header...)
	require.NoError(a.t, err, "%s %s", method, path)
	require.Equal(a.t, status, got, "%s %s: %s", method, path, text)
	require.NoError(a.t, json.Unmarshal(text, &answer), "%s %s: %s", method, path, text)
	return answer
}

// all reads a list to its end.
func all[T any](a *api, path string) []T {
	a.t.Helper()
	page := call[list[T]](a, http.StatusOK, http.MethodGet, base+path, nil)
	require.Nil(a.t, page.Next, "%s has a second page", path)
	require.NotNil(a.t, page.Items, "%s: a list is never null", path)
	return page.Items
}

func (a *api) create(fields map[string]any) thread {
	a.t.Helper()
	return call[thread](a, http.StatusCreated, http.MethodPost, base+"/threads", fields)
}

// ask is a thread that does nothing by itself.
func (a *api) ask(text string) thread {
	a.t.Helper()
	return a.create(map[string]any{"question": text, "auto": false})
}

func (a *api) thread(id string) thread {
	a.t.Helper()
	return call[thread](a, http.StatusOK, http.MethodGet, base+"/threads/"+id, nil)
}

// request asks for a run; fields may be nil.
func (a *api) request(thread string, fields map[string]any, header ...string) run {
	a.t.Helper()
	if fields == nil {
		fields = map[string]any{}
	}
	return call[run](a, http.StatusAccepted, http.MethodPost, base+"/threads/"+thread+"/runs", fields, header...)
}

func (a *api) run(id string) run {
	a.t.Helper()
	return call[run](a, http.StatusOK, http.MethodGet, base+"/runs/"+id, nil)
}

func (a *api) report(run string) string {
	a.t.Helper()
	status, text, err := a.try(http.MethodGet, base+"/runs/"+run+"/report", nil)
	require.NoError(a.t, err)
	require.Equal(a.t, http.StatusOK, status, "%s", text)
	return string(text)
}

// settled waits until nothing of a thread is under way and it says what it waits for.
func (a *api) settled(id string) thread {
	a.t.Helper()
	var now thread
	deadline := time.Now().Add(patience)
	for {
		status, text, err := a.try(http.MethodGet, base+"/threads/"+id, nil) // a gateway that was killed is away for a moment
		if err == nil && status == http.StatusOK {
			now = thread{}
			require.NoError(a.t, json.Unmarshal(text, &now))
			if slices.Contains([]string{"idle", "complete", "paused"}, now.Status) && now.Ledger.Reserved == 0 {
				return now
			}
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("thread %s does not settle: %d %s %v", id, status, text, err)
		}
		<-time.After(25 * time.Millisecond)
	}
}

// researched does a run and waits until its thread has settled.
func (a *api) researched(thread string, fields map[string]any) run {
	a.t.Helper()
	requested := a.request(thread, fields)
	a.settled(thread)
	return a.run(requested.ID)
}

// completed asserts that a run is done with every stage, at the cost of its mode, in so many attempts.
func (a *api) completed(id string, attempts int) run {
	a.t.Helper()
	r := a.run(id)
	require.Equal(a.t, "completed", r.Status, "%+v", r.Failure)
	require.Equal(a.t, map[string]int{"fast": 250, "balanced": 350}[r.Mode], r.Cost)
	require.Len(a.t, r.Attempts, attempts)
	require.Equal(a.t, "completed", r.Attempts[attempts-1].Outcome)
	var names []string
	for _, stage := range r.Stages {
		names = append(names, stage.Name)
		require.Contains(a.t, []string{"done", "skipped"}, stage.State, "%s: %s", stage.Name, stage.Error)
		if stage.Name == "distill" || stage.Name == "judge" {
			require.Equal(a.t, "done", stage.State, stage.Name)
			require.Equal(a.t, "extractive", stage.Engine, stage.Name)
		}
	}
	require.Subset(a.t, names, []string{"distill", "judge", "questions", "brief", "coverage"})
	return r
}

// spent asserts what a thread's account says when nothing is under way.
func (a *api) spent(id string, credits int) thread {
	a.t.Helper()
	now := a.thread(id)
	require.Equal(a.t, credits, now.Ledger.Spent, "spent")
	require.Zero(a.t, now.Ledger.Reserved, "reserved")
	return now
}
