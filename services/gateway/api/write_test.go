package api_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestTheSameKeyIsDoneOnceAndAnsweredAlike(t *testing.T) {
	t.Parallel()
	g := start(t)
	key := header("Idempotency-Key", "k1")
	var first, again api.Thread
	g.do("POST", "/api/v1/threads", `{"question":"Why?","budget":500,"auto":false}`, key).is(201, &first)
	g.do("POST", "/api/v1/threads", ` { "auto": false, "budget": 500, "question": "Why?" } `, key).is(201, &again)
	require.Equal(t, first, again)
	g.do("POST", "/api/v1/threads", `{"question":"Why not?","budget":500,"auto":false}`, key).refused(422, "idempotency-key-reused")
	g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, key).refused(422, "idempotency-key-reused")
	at := "/api/v1/threads/" + first.ID

	var run, same api.Run
	g.do("POST", at+"/runs", `{}`, key).is(202, &run)
	g.do("POST", at+"/runs", nil, key).is(202, &same)
	require.Equal(t, run.ID, same.ID)
	g.do("POST", at+"/runs", `{"mode":"balanced"}`, key).refused(422, "idempotency-key-reused")
	var thread api.Thread
	g.do("GET", at, nil).is(200, &thread)
	require.Equal(t, 250, thread.Ledger.Reserved)

	var question, sameQuestion api.Question
	g.do("POST", at+"/questions", `{"text":"And then?"}`, key).is(201, &question)
	g.do("POST", at+"/questions", `{"text":"And then?"}`, key).is(201, &sameQuestion)
	require.Equal(t, question, sameQuestion)
	require.Equal(t, 0, *question.Position)
	g.do("POST", at+"/questions", `{"text":"And now?"}`, key).refused(422, "idempotency-key-reused")

	g.complete(first.ID, run.ID)
	retry := "/api/v1/runs/" + run.ID + "/stages/distill/retry"
	g.do("POST", retry, nil, key).is(202, nil)
	gatewaytest.Derive(t, g.service, first.ID, run.ID)
	g.caughtUp()
	g.do("POST", retry, nil, key).is(202, nil)
	g.do("GET", at, nil).is(200, &thread)
	require.Equal(t, "idle", thread.Status, "the repeated request asked for nothing")

	g.do("PATCH", at, `{"budget":600}`, key).is(200, nil)
	g.do("PATCH", at, `{"budget":700}`).is(200, nil)
	g.do("PATCH", at, `{"budget":600}`, key).is(200, &thread)
	require.Equal(t, 700, thread.Ledger.Budget, "what was done once is not done again")

	g.do("DELETE", at, nil).is(200, nil)
	g.do("POST", "/api/v1/threads", `{"question":"Why?","budget":500,"auto":false}`, key).refused(410, "thread-deleted")
}

func TestEqualRequestsAtOnceReserveOnce(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var run api.Run
			g.do("POST", "/api/v1/threads/"+thread.ID+"/runs", `{}`, header("Idempotency-Key", "one")).is(202, &run)
			ids[i] = run.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	var now api.Thread
	g.do("GET", "/api/v1/threads/"+thread.ID, nil).is(200, &now)
	require.Equal(t, 250, now.Ledger.Reserved)
}

func TestTheBudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	g := start(t)
	var thread api.Thread
	g.do("POST", "/api/v1/threads", `{"question":"Why?","budget":500}`).is(201, &thread)
	var all sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		all.Go(func() { statuses[i] = g.do("POST", "/api/v1/threads/"+thread.ID+"/runs", `{}`).status })
	}
	all.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.Equal(t, map[int]int{202: 2, 402: 6}, count)
	p := g.do("POST", "/api/v1/threads/"+thread.ID+"/runs", `{"mode":"balanced"}`).refused(402, "budget-exceeded")
	require.EqualValues(t, []any{0., 500., 350., 500.}, []any{p["spent"], p["reserved"], p["cost"], p["budget"]})
}

func TestBadInputIsRefusedWithAClearProblem(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	at := "/api/v1/threads/" + thread.ID
	long := strings.Repeat("é", 10_001)
	for _, c := range []struct {
		name, method, path string
		body               any
		status             int
		code               string
	}{
		{"empty question", "POST", "/api/v1/threads", `{"question":""}`, 422, "invalid-question"},
		{"blank question", "POST", "/api/v1/threads", `{"question":" \n "}`, 422, "invalid-question"},
		{"10,001 code points", "POST", "/api/v1/threads", map[string]any{"question": long}, 422, "invalid-question"},
		{"no question", "POST", "/api/v1/threads", `{}`, 422, "invalid-request"},
		{"question of another type", "POST", "/api/v1/threads", `{"question":5}`, 422, "invalid-request"},
		{"control character", "POST", "/api/v1/threads", `{"question":"a\u0000b"}`, 422, "invalid-question"},
		{"half of a pair", "POST", "/api/v1/threads", `{"question":"a\ud800b"}`, 422, "invalid-utf8"},
		{"the other half", "POST", "/api/v1/threads", `{"question":"\ud83d\ude00\\\ude00"}`, 422, "invalid-utf8"},
		{"control character in a title", "POST", "/api/v1/threads", `{"question":"Why?","title":"a\u001b[31mb"}`, 422, "invalid-title"},
		{"control character in a tag", "PATCH", at, `{"tags":["a\u0000"]}`, 422, "invalid-tags"},
		{"dead letter of no number", "POST", "/api/v1/dead/0/retry", nil, 404, "not-found"},
		{"broken UTF-8", "POST", "/api/v1/threads", "{\"question\":\"a\xffb\"}", 422, "invalid-utf8"},
		{"broken JSON", "POST", "/api/v1/threads", `{"question":`, 400, "malformed-request"},
		{"an array", "POST", "/api/v1/threads", `[]`, 422, "invalid-request"},
		{"unknown field", "POST", "/api/v1/threads", `{"question":"Why?","bugdet":5}`, 422, "invalid-request"},
		{"negative budget", "POST", "/api/v1/threads", `{"question":"Why?","budget":-1}`, 422, "invalid-budget"},
		{"broken budget", "POST", "/api/v1/threads", `{"question":"Why?","budget":1.5}`, 422, "invalid-request"},
		{"huge budget", "POST", "/api/v1/threads", `{"question":"Why?","budget":1e30}`, 422, "invalid-request"},
		{"unknown mode", "POST", "/api/v1/threads", `{"question":"Why?","mode":"slow"}`, 422, "invalid-mode"},
		{"unknown provider", "POST", "/api/v1/threads", `{"question":"Why?","provider":"x"}`, 422, "invalid-provider"},
		{"unknown engine", "POST", "/api/v1/threads", `{"question":"Why?","engine":"x"}`, 422, "invalid-engine"},
		{"batch of none", "POST", "/api/v1/threads", `{"question":"Why?","batch":0}`, 422, "invalid-batch"},
		{"empty tag", "POST", "/api/v1/threads", `{"question":"Why?","tags":[""]}`, 422, "invalid-tags"},
		{"long title", "POST", "/api/v1/threads", map[string]any{"question": "Why?", "title": strings.Repeat("x", 201)}, 422, "invalid-title"},
		{"too large", "POST", "/api/v1/threads", map[string]any{"question": strings.Repeat("x", 1<<20)}, 413, "too-large"},
		{"patch with a negative budget", "PATCH", at, `{"budget":-5}`, 422, "invalid-budget"},
		{"patch with an unknown field", "PATCH", at, `{"question":"Other?"}`, 422, "invalid-request"},
		{"patch with a negative answer budget", "PATCH", at, `{"answer_budget":-1}`, 422, "invalid-answer-budget"},
		{"patch without a body", "PATCH", at, nil, 400, "malformed-request"},
		{"run of a blank question", "POST", at + "/runs", `{"question":"  "}`, 422, "invalid-question"},
		{"run of a long question", "POST", at + "/runs", map[string]any{"question": long}, 422, "invalid-question"},
		{"run in an unknown mode", "POST", at + "/runs", `{"mode":"slow"}`, 422, "invalid-mode"},
		{"empty follow-up", "POST", at + "/questions", `{"text":""}`, 422, "invalid-question"},
		{"known follow-up", "POST", at + "/questions", `{"text":"why?"}`, 409, "question-known"},
		{"unknown status", "GET", "/api/v1/threads?status=happy", nil, 422, "invalid-request"},
		{"unknown parameter", "GET", "/api/v1/threads?statsu=new", nil, 422, "invalid-request"},
		{"unknown cursor", "GET", "/api/v1/threads?cursor=zzz", nil, 422, "invalid-cursor"},
		{"limit of none", "GET", "/api/v1/threads?limit=0", nil, 422, "invalid-request"},
		{"no time", "GET", at + "?as_of=yesterday", nil, 422, "invalid-time"},
		{"before its time", "GET", at + "?as_of=2020-01-01", nil, 404, "not-found"},
		{"no brief yet", "GET", at + "/brief", nil, 404, "no-brief"},
		{"no coverage yet", "GET", at + "/coverage", nil, 404, "no-coverage"},
		{"unknown event id", "GET", "/api/v1/events?after=x", nil, 422, "invalid-event-id"},
		{"unknown path", "GET", "/api/v1/nothing", nil, 404, "not-found"},
		{"unknown setting", "PUT", "/api/v1/settings", `{"key":"x"}`, 422, "invalid-request"},
		{"setting out of range", "PUT", "/api/v1/settings", `{"budget":-1}`, 422, "invalid-settings"},
		{"setting of an unknown engine", "PUT", "/api/v1/settings", `{"engine":"magic"}`, 422, "invalid-settings"},
		{"dead letter that is none", "POST", "/api/v1/dead/x/retry", nil, 404, "not-found"},
		{"dead letter that is gone", "POST", "/api/v1/dead/99/retry", nil, 404, "not-found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := g.do(c.method, c.path, c.body)
			a.t = t
			a.refused(c.status, c.code)
		})
	}
	a := g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header("Content-Type", "text/plain"))
	a.refused(415, "unsupported-media-type")
	var list api.List[api.Thread]
	g.do("GET", "/api/v1/threads", nil).is(200, &list)
	require.Len(t, list.Items, 1, "nothing came of any of them")
	require.Equal(t, thread.Position, list.Items[0].Position)
}

func TestTenThousandCodePointsAreAQuestion(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create(strings.Repeat("é", 10_000))
	require.Equal(t, 80, len([]rune(strings.TrimSuffix(thread.Title, "…")))+strings.Count(thread.Title, "…"))
}

func TestUnknownThingsAreNotFound(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, path := range []string{
		"GET /threads/x", "PATCH /threads/x", "DELETE /threads/x", "POST /threads/x/start", "POST /threads/x/pause", "POST /threads/x/rebuild",
		"POST /threads/x/runs", "GET /threads/x/runs", "GET /threads/x/facts", "GET /threads/x/sources", "GET /threads/x/questions", "POST /threads/x/questions",
		"GET /threads/x/contradictions", "GET /threads/x/brief", "GET /threads/x/coverage", "GET /events?thread=x",
		"GET /runs/x", "DELETE /runs/x", "POST /runs/x/cancel", "POST /runs/x/stages/brief/retry", "GET /runs/x/report", "GET /runs/x/trail",
		"GET /facts/x", "PATCH /questions/x", "DELETE /questions/x",
		"DELETE /threads/a.b", "POST /threads/%3E/start", "POST /runs/*/cancel", "GET /runs/a%20b", "POST /threads/a%0ab/runs",
	} {
		method, rest, _ := strings.Cut(path, " ")
		var body any
		switch {
		case method == "PATCH" && strings.Contains(rest, "questions"):
			body = `{"position":0}`
		case method == "PATCH":
			body = `{"budget":5}`
		case strings.HasSuffix(path, "/questions") && method == "POST":
			body = `{"text":"Why?"}`
		}
		p := g.do(method, "/api/v1"+rest, body).refused(404, "not-found")
		require.NotContains(t, p["detail"], "projection", path)
	}
}

func TestADeletedThreadIsGone(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	at := "/api/v1/threads/" + thread.ID
	var gone api.DeletedThread
	g.do("DELETE", at, nil).is(200, &gone)
	require.Equal(t, api.DeletedThread{ID: thread.ID, Deleted: true, Spent: 250, Projected: true, Purged: true}, gone)
	for _, path := range []string{"GET ", "DELETE ", "POST /start", "POST /pause", "POST /runs", "POST /rebuild", "GET /runs", "GET /facts", "GET /sources", "GET /questions", "GET /brief", "GET /coverage", "GET /contradictions"} {
		method, rest, _ := strings.Cut(path, " ")
		p := g.do(method, at+rest, nil).refused(410, "thread-deleted")
		if method == "GET" && rest == "" {
			require.EqualValues(t, 250, p["spent"])
		}
	}
	g.do("GET", "/api/v1/runs/"+run.ID, nil).refused(404, "not-found")
	g.do("GET", "/api/v1/facts/"+gatewaytest.FactIDs(thread.ID)[0], nil).refused(404, "not-found")
	var list api.List[api.Thread]
	g.do("GET", "/api/v1/threads", nil).is(200, &list)
	require.Empty(t, list.Items)
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.service.Config.Data, api.FileName)+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	var events int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM events WHERE thread = ?`, thread.ID).Scan(&events))
	require.Equal(t, 1, events, "the tombstone")
}

func TestADeletedRunLeavesItsFacts(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	at := "/api/v1/runs/" + run.ID
	g.do("DELETE", at, nil).refused(409, "run-active")
	g.do("GET", at+"/report", nil).refused(404, "no-report")
	g.complete(thread.ID, run.ID)
	var gone api.DeletedRun
	g.do("DELETE", at, nil).is(200, &gone)
	require.Equal(t, api.DeletedRun{ID: run.ID, Deleted: true, Projected: true, Purged: true}, gone)
	g.do("DELETE", at, nil).is(200, nil)
	g.do("GET", at+"/report", nil).refused(410, "run-deleted")
	g.do("GET", at+"/trail", nil).refused(410, "run-deleted")
	var left api.Run
	g.do("GET", at, nil).is(200, &left)
	require.True(t, left.Deleted)
	require.Equal(t, "null", string(left.Metadata))
	var now api.Thread
	g.do("GET", "/api/v1/threads/"+thread.ID, nil).is(200, &now)
	require.Equal(t, 250, now.Ledger.Spent)
	require.Equal(t, 3, now.Counts.Facts)
	g.do("POST", at+"/stages/distill/retry", nil).refused(410, "run-deleted")
	g.do("POST", "/api/v1/threads/"+thread.ID+"/rebuild", nil).refused(409, "no-report")
}

func TestStartPauseAndCancel(t *testing.T) {
	t.Parallel()
	g := start(t)
	var thread api.Thread
	g.do("POST", "/api/v1/threads", `{"question":"Why?","budget":250}`).is(201, &thread)
	at := "/api/v1/threads/" + thread.ID
	g.do("POST", at+"/start", nil).is(200, &thread)
	require.Equal(t, []any{"running", "cycle", 250}, []any{thread.Status, thread.Reason.Code, thread.Ledger.Reserved})
	again := thread
	g.do("POST", at+"/start", nil).is(200, &again)
	require.Equal(t, thread, again, "idempotent")

	g.do("POST", at+"/pause", nil).is(200, &thread)
	require.Equal(t, []any{"paused", "paused", 0}, []any{thread.Status, thread.Reason.Code, thread.Ledger.Reserved})
	var runs api.List[api.Run]
	g.do("GET", at+"/runs", nil).is(200, &runs)
	require.Equal(t, "withdrawn", runs.Items[0].Status)
	require.Equal(t, "skipped", runs.Items[0].Stages[0].State)
	g.do("POST", "/api/v1/runs/"+runs.Items[0].ID+"/cancel", nil).is(200, nil)

	run := g.run(thread.ID) // also of a paused thread
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	g.do("POST", "/api/v1/runs/"+run.ID+"/cancel", nil).is(200, &run)
	require.Equal(t, "failed", run.Status)
	require.Equal(t, "cancelled", run.Failure.Code)
	require.Contains(t, run.Failure.Detail, "may still bill")
	require.Equal(t, "cancelled", run.Attempts[0].Outcome)
	require.Zero(t, run.Cost)

	gatewaytest.Settle(t, g.service, thread.ID)
	run = g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	g.do("POST", "/api/v1/runs/"+run.ID+"/cancel", nil).refused(409, "run-completed")
	p := g.do("POST", at+"/start", nil).refused(409, "nothing-to-do")
	require.Equal(t, "budget", p["reason"])
	g.do("GET", at, nil).is(200, &thread)
	require.Equal(t, []any{"complete", "budget"}, []any{thread.Status, thread.Reason.Code})
	g.do("PATCH", at, `{"budget":1000,"title":" Renamed ","tags":["a","b"],"answer_budget":3}`).is(200, &thread)
	require.Equal(t, []any{"idle", "ready", "Renamed", 3}, []any{thread.Status, thread.Reason.Code, thread.Title, *thread.Settings.AnswerBudget})
	g.do("PATCH", at, `{"answer_budget":null}`).is(200, &thread)
	require.Nil(t, thread.Settings.AnswerBudget)
	g.do("PATCH", at, `{"archived":true}`).is(200, &thread)
	require.True(t, thread.Archived)
	g.do("POST", at+"/start", nil).refused(409, "thread-archived")
	for query, want := range map[string]int{"": 0, "?archived=true": 1, "?archived=true&tag=a": 1, "?archived=true&tag=z": 0, "?archived=true&status=idle": 1, "?archived=true&status=new": 0} {
		var list api.List[api.Thread]
		g.do("GET", "/api/v1/threads"+query, nil).is(200, &list)
		require.Len(t, list.Items, want, query)
	}
}

// Who would offer Start learns before whether it would go on, and why not.
func TestAThreadSaysWhetherStartWouldGoOn(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	at := "/api/v1/threads/" + thread.ID
	refused := func() *event.Reason {
		t.Helper()
		var now api.Thread
		g.do("GET", at, nil).is(200, &now)
		return now.StartRefused
	}
	require.Nil(t, thread.StartRefused)
	g.do("PATCH", at, `{"budget":200}`).is(200, &thread)
	require.Equal(t, "budget", thread.StartRefused.Code)
	require.Contains(t, thread.StartRefused.Text, "Raise the budget")
	g.do("PATCH", at, `{"budget":2000}`).is(200, nil)
	run := g.run(thread.ID)
	require.Nil(t, refused(), "while a run is under way it is started alone")
	g.complete(thread.ID, run.ID)
	require.Nil(t, refused())
	var questions api.List[api.Question]
	g.do("GET", at+"/questions", nil).is(200, &questions)
	for _, q := range questions.Items {
		if q.Status == "pending" {
			g.do("DELETE", "/api/v1/questions/"+q.ID, nil).is(200, nil)
		}
	}
	g.do("GET", at, nil).is(200, &thread)
	require.Equal(t, []string{"idle", "auto_off", "no_questions"}, []string{thread.Status, thread.Reason.Code, thread.StartRefused.Code})
	require.Contains(t, thread.StartRefused.Text, "Put a question of your own")
	g.do("POST", at+"/start", nil).refused(409, "nothing-to-do")
	g.do("POST", at+"/questions", `{"text":"And this?"}`).is(201, nil)
	require.Nil(t, refused())
	g.do("PATCH", at, `{"archived":true}`).is(200, nil)
	require.Equal(t, "archived", refused().Code)
	g.do("POST", at+"/start", nil).refused(409, "thread-archived")
}

// Who would offer a run learns before whether it would be accepted, in each mode, and why not: it is so if and only if the request is refused.
func TestAThreadSaysWhetherARunWouldBeAccepted(t *testing.T) {
	t.Parallel()
	const enough, short, archived = "", "budget", "archived"
	for name, c := range map[string]struct {
		budget         int
		do             func(g *gateway, at string)
		fast, balanced string
		says           string
	}{
		"there is enough":               {budget: 350, fast: enough, balanced: enough},
		"only a fast run fits":          {budget: 349, fast: enough, balanced: short, says: "A run costs 350 credits, and only 349 of the budget of 349 are left."},
		"none fits from the beginning":  {budget: 100, fast: short, balanced: short, says: "A run costs 350 credits, and only 100 of the budget of 100 are left."},
		"there is no budget":            {budget: 0, fast: short, balanced: short, says: "A run costs 350 credits, and nothing of the budget of 0 is left."},
		"what is reserved is not there": {budget: 599, do: func(g *gateway, at string) { g.do("POST", at+"/runs", `{}`).is(202, nil) }, fast: enough, balanced: short, says: "only 349 of the budget of 599"},
		"the budget was lowered below spent": {budget: 300, do: func(g *gateway, at string) {
			thread := filepath.Base(at)
			g.append(thread, notebook.StartAttempt{Run: g.run(thread).ID, Max: 3}) // one that was not started would be withdrawn
			g.do("PATCH", at, `{"budget":20}`).is(200, nil)
		}, fast: short, balanced: short, says: "nothing of the budget of 20 is left"},
		"it is archived": {budget: 100, do: func(g *gateway, at string) { g.do("PATCH", at, `{"archived":true}`).is(200, nil) }, fast: archived, balanced: archived, says: "archived: nothing is asked."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			var thread api.Thread
			g.do("POST", "/api/v1/threads", fmt.Sprintf(`{"question":"Why?","mode":"fast","budget":%d}`, c.budget)).is(201, &thread)
			at := "/api/v1/threads/" + thread.ID
			if c.do != nil {
				c.do(g, at)
			}
			g.do("GET", at, nil).is(200, &thread)
			for mode, refused := range map[string]*event.Reason{"fast": thread.RunRefused.Fast, "balanced": thread.RunRefused.Balanced} {
				want := map[string]string{"fast": c.fast, "balanced": c.balanced}[mode]
				if want == "" {
					require.Nil(t, refused, mode)
					continue
				}
				require.Equal(t, want, refused.Code, mode)
				answer := g.do("POST", at+"/runs", `{"mode":"`+mode+`"}`)
				require.Contains(t, []int{402, 409}, answer.status, mode)
			}
			if c.says != "" {
				require.Contains(t, thread.RunRefused.Balanced.Text, c.says)
			}
			if c.balanced == "" {
				g.do("POST", at+"/runs", `{"mode":"balanced"}`).is(202, nil)
			} else if c.fast == "" {
				g.do("POST", at+"/runs", `{"mode":"fast"}`).is(202, nil)
			}
		})
	}
}

// It is opened all the same, and says at once what keeps it from asking.
func TestAThreadThatCannotAskOnceSaysSoWhenItIsOpened(t *testing.T) {
	t.Parallel()
	g := start(t)
	var thread api.Thread
	g.do("POST", "/api/v1/threads", `{"question":"Why?","mode":"fast","budget":100}`).is(201, &thread)
	require.Equal(t, "Nothing has been asked yet. The budget does not allow the next run: 0 credits spent, 0 reserved, 250 for the run, 100 in the budget. Raise the budget to go on.", thread.Reason.Text)
	require.Equal(t, "A run costs 250 credits, and only 100 of the budget of 100 are left.", thread.RunRefused.Fast.Text)
}

// A run that a person asked for is no sign of autopilot: whoever says "autopilot asks it next" has to know whether it is at work.
func TestAThreadSaysWhetherAutopilotIsAtWork(t *testing.T) {
	t.Parallel()
	g := start(t)
	var thread api.Thread
	g.do("POST", "/api/v1/threads", `{"question":"Why?","mode":"fast","budget":2000,"auto":true}`).is(201, &thread)
	at := "/api/v1/threads/" + thread.ID
	look := func() api.Thread {
		var now api.Thread
		g.do("GET", at, nil).is(200, &now)
		return now
	}
	require.False(t, thread.Autopilot, "it is on, and was not started")
	g.do("POST", at+"/runs", `{}`).is(202, nil)
	now := look()
	require.Equal(t, []any{"running", "manual", false}, []any{now.Status, now.Reason.Code, now.Autopilot})
	g.do("POST", at+"/start", nil).is(200, nil)
	now = look()
	require.Equal(t, []any{"running", "manual", true}, []any{now.Status, now.Reason.Code, now.Autopilot}, "the same run is under way, and autopilot goes on behind it")
	g.do("PATCH", at, `{"auto":false}`).is(200, nil)
	require.False(t, look().Autopilot, "it stops when the run has ended")
	g.do("PATCH", at, `{"auto":true}`).is(200, nil)
	g.do("POST", at+"/pause", nil).is(200, nil)
	require.False(t, look().Autopilot)
}

// Who calls finds what came of a call by the trace that it named, whatever else it sent.
func TestEventsCarryTheTraceOfTheRequestThatLedToThem(t *testing.T) {
	t.Parallel()
	g := start(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	traceOf := func(change ...func(*http.Request)) string {
		t.Helper()
		var thread api.Thread
		g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, change...).is(201, &thread)
		stream, err := g.service.JS.Stream(t.Context(), topology.Notebook)
		require.NoError(t, err)
		message, err := stream.GetLastMsgForSubject(t.Context(), topology.ThreadFilter(thread.ID))
		require.NoError(t, err)
		require.Empty(t, message.Header.Get("tracestate"), "it is the caller's own, and any length")
		_, rest, _ := strings.Cut(message.Header.Get("traceparent"), "-")
		id, _, _ := strings.Cut(rest, "-")
		require.Regexp(t, "^[0-9a-f]{32}$", id)
		return id
	}
	require.Equal(t, trace, traceOf(header("traceparent", "00-"+trace+"-b7ad6b7169203331-01"), header("tracestate", "a=b")))
	require.NotEqual(t, traceOf(), traceOf(), "without one each request has its own")
	for _, nonsense := range []string{"nonsense", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "00-" + trace} {
		require.NotEqual(t, trace, traceOf(header("traceparent", nonsense)))
	}
}

func TestAPlaceInTheLine(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	at := "/api/v1/threads/" + thread.ID + "/questions"
	var a, b api.Question
	g.do("POST", at, `{"text":"A?"}`).is(201, &a)
	g.do("POST", at, `{"text":"B?"}`).is(201, &b)
	order := func() (texts []string) {
		var list api.List[api.Question]
		g.do("GET", at, nil).is(200, &list)
		for i, q := range list.Items {
			if q.Position != nil {
				require.Equal(t, i, *q.Position)
				texts = append(texts, q.Text)
			}
		}
		return texts
	}
	require.Equal(t, []string{"Why?", "A?", "B?"}, order())
	g.do("PATCH", "/api/v1/questions/"+b.ID, `{"position":0}`).is(200, &b)
	require.Equal(t, 0, *b.Position)
	require.Equal(t, []string{"B?", "Why?", "A?"}, order())
	g.do("DELETE", "/api/v1/questions/"+a.ID, nil).is(200, &a)
	require.Equal(t, "dismissed", a.Status)
	require.Nil(t, a.Position)
	require.Equal(t, []string{"B?", "Why?"}, order())
	g.do("PATCH", "/api/v1/questions/"+a.ID, `{"position":0}`).refused(409, "question-not-pending")
	g.do("PATCH", "/api/v1/questions/"+b.ID, `{"position":-1}`).refused(422, "invalid-position")
}

func TestAWriteIsAnsweredWhenTheProjectionLags(t *testing.T) {
	t.Parallel()
	g := startWith(t, servicetest.NewBus(t), api.Options{CommandTimeout: servicetest.Wait, ProjectionWait: time.Second})
	thread := g.create("Why?")
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.service.Config.Data, api.FileName)+"?_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()      //nolint:errcheck // the test would notice
	tx, err := db.Begin() // nobody else can write now
	require.NoError(t, err)
	var late api.Thread
	g.do("PATCH", "/api/v1/threads/"+thread.ID, `{"title":"Late"}`).is(200, &late)
	require.False(t, *late.Projected)
	require.Equal(t, "Late", late.Title, "what the write did is told all the same")
	require.NoError(t, tx.Rollback())
	g.caughtUp()
	var now api.Thread
	g.do("GET", "/api/v1/threads/"+thread.ID, nil).is(200, &now)
	require.Equal(t, "Late", now.Title)
	require.Nil(t, now.Projected)
}

func TestSettingsAreSavedAndKeysAreNeverTold(t *testing.T) {
	t.Parallel()
	g := start(t)
	const secret = "tabs-very-secret-key"
	var s api.Settings
	g.do("GET", "/api/v1/settings", nil).is(200, &s)
	require.False(t, s.TabstackKeySet)
	a := g.do("PUT", "/api/v1/settings", map[string]any{"tabstack_key": secret, "mode": "balanced", "budget": 700, "ollama": map[string]any{"num_ctx": 4096}})
	a.is(200, &s)
	require.NotContains(t, string(a.body), secret)
	require.Equal(t, []any{true, "balanced", 700, 4096}, []any{s.TabstackKeySet, s.Mode, s.Budget, s.Ollama.NumCtx})
	thread := g.create("Why?")
	require.Equal(t, []any{"balanced", 700}, []any{thread.Settings.Mode, thread.Ledger.Budget})
	keyFile, err := os.ReadFile(g.service.Config.KeyFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(g.service.Config.KeyFile, []byte("of another machine"), 0o600))
	var ready api.Ready
	g.do("GET", "/readyz", nil).is(200, &ready)
	require.Len(t, ready.Reasons, 1, "a key that cannot be read is told")
	require.Contains(t, ready.Reasons[0], "tabstack")
	require.NoError(t, os.WriteFile(g.service.Config.KeyFile, keyFile, 0o600))
	g.do("PUT", "/api/v1/settings", `{"tabstack_key":null,"mode":null}`).is(200, &s)
	require.Equal(t, []any{false, "fast", 700}, []any{s.TabstackKeySet, s.Mode, s.Budget})
	for _, body := range []string{`{"tabstack_key":"` + secret + `","x":1}`, `{"tabstack_key":"` + secret, `{"tabstack_key":["` + secret + `"]}`, `{"provider":"brave","tabstack_key":"` + secret + `"}`} {
		a := g.do("PUT", "/api/v1/settings", body)
		require.GreaterOrEqual(t, a.status, 400)
		require.NotContains(t, string(a.body), secret, "an error never repeats what was sent")
	}
}

func TestListsGoOnBehindTheCursor(t *testing.T) {
	t.Parallel()
	g := start(t)
	var want []string
	for i := range 5 {
		want = append([]string{g.create(fmt.Sprintf("Question %d?", i)).ID}, want...)
	}
	var got []string
	next := ""
	for pages := 0; ; pages++ {
		require.Less(t, pages, 5)
		var list api.List[api.Thread]
		g.do("GET", "/api/v1/threads?limit=2&cursor="+next, nil).is(200, &list)
		for _, item := range list.Items {
			got = append(got, item.ID)
		}
		if list.Next == nil {
			break
		}
		next = *list.Next
		if pages == 0 { // the cursor's own thread goes between two pages
			g.do("DELETE", "/api/v1/threads/"+next, nil).is(200, nil)
		}
	}
	require.Equal(t, want, got)
}

func TestFactsAreFiltered(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.complete(thread.ID, run.ID)
	second := g.run(thread.ID)
	g.complete(thread.ID, second.ID)
	at := "/api/v1/threads/" + thread.ID + "/facts"
	var all api.List[api.Fact]
	g.do("GET", at, nil).is(200, &all)
	source := all.Items[1].Source.ID
	require.Equal(t, 1, all.Items[1].Support.Pages)
	require.NotNil(t, all.Items[1].ConfirmedAt, "the second run found it again")
	for query, want := range map[string]int{
		"": 3, "include=all": 3, "tag=energy": 3, "tag=x": 0, "stale=true": 1, "stale=false": 2, "disputed=true": 2, "disputed=false": 1,
		"run=" + run.ID: 3, "run=" + second.ID: 3, "run=zzz": 0, "source=" + source: 1, "source=zzz": 0, "limit=1": 1,
	} {
		var list api.List[api.Fact]
		g.do("GET", at+"?"+query, nil).is(200, &list)
		require.Len(t, list.Items, want, query)
	}
	var one api.Fact
	g.do("GET", "/api/v1/facts/"+all.Items[0].ID, nil).is(200, &one)
	require.Equal(t, all.Items[0], one)
}

func TestADroppedDuplicateSupportsItsRoot(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	run := g.run(thread.ID)
	g.append(thread.ID, notebook.StartAttempt{Run: run.ID, Max: 3})
	g.append(thread.ID, notebook.CompleteRun{Run: run.ID, Completed: gatewaytest.Completed(thread.ID)})
	sentence := &event.Excerpt{Text: "The same sentence."}
	fact := func(statement, url string) event.Fact {
		return gatewaytest.Fact(thread.ID, statement, url, sentence)
	}
	elder, newer := fact("A statement.", "https://example.com/a"), fact("The statement again.", "https://other.org/b")
	g.append(thread.ID, notebook.Distil{Run: run.ID, Engine: "extractive", Facts: []event.Fact{elder, newer}})
	g.append(thread.ID, notebook.Judge{Run: run.ID, Engine: "extractive", Verdicts: []event.Verdict{{
		Elder: elder.ID, ElderFingerprint: elder.Fingerprint, Newer: newer.ID, NewerFingerprint: newer.Fingerprint, Relation: event.Duplicate}}})
	g.caughtUp()
	var list api.List[api.Fact]
	g.do("GET", "/api/v1/threads/"+thread.ID+"/facts", nil).is(200, &list)
	require.Len(t, list.Items, 1)
	s := list.Items[0].Support
	require.Equal(t, []int{2, 2, 1}, []int{s.Pages, s.Sites, s.Copies})
	g.do("GET", "/api/v1/threads/"+thread.ID+"/facts?include=all", nil).is(200, &list)
	require.Equal(t, elder.ID, *list.Items[1].DuplicateOf)
}

func TestAThreadAsItWas(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	var before api.Thread
	created := thread.UpdatedAt.Add(50 * 1e6).Format("2006-01-02T15:04:05.999999999Z07:00")
	require.Eventually(t, func() bool { return g.service.Now().After(thread.UpdatedAt.Add(100 * 1e6)) }, servicetest.Wait, 1e6)
	g.run(thread.ID)
	g.do("GET", "/api/v1/threads/"+thread.ID+"?as_of="+created, nil).is(200, &before)
	require.Equal(t, "new", before.Status)
	var list api.List[api.Thread]
	g.do("GET", "/api/v1/threads?status=new&as_of="+created, nil).is(200, &list)
	require.Len(t, list.Items, 1)
	g.do("GET", "/api/v1/threads?status=new", nil).is(200, &list)
	require.Empty(t, list.Items)
}

func TestOnlyReadsAreAllowedToOthersPages(t *testing.T) {
	t.Parallel()
	g := start(t)
	own := strings.TrimPrefix(g.url, "http://")
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"a program":                {nil, 201},
		"the own page":             {[]string{"Origin", g.url, "Sec-Fetch-Site", "same-origin"}, 201},
		"another site":             {[]string{"Origin", "https://evil.example"}, 403},
		"another site, new":        {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another port":             {[]string{"Origin", "http://127.0.0.1:1"}, 403},
		"a sandboxed page":         {[]string{"Origin", "null"}, 403},
		"a name pointed here":      {[]string{"Host", "evil.example"}, 403},
		"a name pointed here, too": {[]string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
		"this machine by name":     {[]string{"Host", "localhost:" + own[strings.LastIndex(own, ":")+1:]}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*http.Request)
			for i := 0; i < len(c.headers); i += 2 {
				change = append(change, header(c.headers[i], c.headers[i+1]))
			}
			a := g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, change...)
			require.Equal(t, c.status, a.status, "%s", a.body)
		})
	}
	require.Equal(t, 403, g.do("GET", "/api/v1/threads", nil, header("Host", "evil.example")).status, "reads neither")
}

// A recorded stream answers every question alike: going on by itself over it is for who asks for that.
func TestAutopilotIsOnByItselfOnlyWhereItWouldAskForReal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  config.Secret
		body string
		auto bool
	}{
		"no key":                {body: `{"question":"Why?"}`},
		"no key, and asked for": {body: `{"question":"Why?","auto":true}`, auto: true},
		"a key":                 {key: "k", body: `{"question":"Why?"}`, auto: true},
		"a key, and refused":    {key: "k", body: `{"question":"Why?","auto":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, func(x *config.Config) { x.Tabstack.APIKey, x.Tabstack.BaseURL = c.key, "http://127.0.0.1:1" })
			var thread api.Thread
			g.do("POST", "/api/v1/threads", c.body).is(201, &thread)
			require.Equal(t, c.auto, thread.Settings.Auto)
		})
	}
}
