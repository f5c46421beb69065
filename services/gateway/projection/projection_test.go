package projection_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

func TestMain(m *testing.M) {
	testenv.Clear()
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// open opens a projection and runs it until close.
func open(t testing.TB, s *service.Service, path string) (p *projection.Projection, closed func()) {
	t.Helper()
	p, err := projection.Open(t.Context(), projection.Config{Path: path, JS: s.JS, Artifacts: s.Artifacts, Log: s.Log})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	over := false
	closed = func() {
		if !over {
			over = true
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, p.Close())
		}
	}
	t.Cleanup(closed)
	return p, closed
}

// caughtUp waits until the projection has everything, texts by reference too.
func caughtUp(t testing.TB, s *service.Service, p *projection.Projection, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
	defer cancel()
	last, err := s.Tail.CatchUp(ctx)
	require.NoError(t, err)
	require.NoError(t, p.WaitFor(ctx, last))
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	require.Eventually(t, func() bool {
		var missing int
		require.NoError(t, db.QueryRow(`SELECT (SELECT count(*) FROM reports WHERE markdown IS NULL) + (SELECT count(*) FROM pages WHERE claims IS NULL)`).Scan(&missing))
		return missing == 0
	}, servicetest.Wait, 5*time.Millisecond)
}

// dump is the content of every table and view, as text.
func dump(t testing.TB, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	names := column(t, db, `SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name`)
	var out strings.Builder
	for _, name := range names {
		rows, err := db.Query(`SELECT * FROM ` + name)
		require.NoError(t, err)
		columns, err := rows.Columns()
		require.NoError(t, err)
		var lines []string
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			require.NoError(t, rows.Scan(values...))
			var line strings.Builder
			for i, c := range columns {
				v := *values[i].(*any)
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				fmt.Fprintf(&line, "%s=%v|", c, v)
			}
			lines = append(lines, line.String())
		}
		require.NoError(t, rows.Err())
		slices.Sort(lines)
		fmt.Fprintf(&out, "== %s\n%s\n", name, strings.Join(lines, "\n"))
	}
	return out.String()
}

func column(t testing.TB, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}

func create(t testing.TB, s *service.Service, thread string) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.CreateThread{Question: "What is " + thread + "?", Tags: []string{"x"}, Settings: servicetest.Settings()})
}

func request(t testing.TB, s *service.Service, thread, run, question string) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.RequestRun{Run: run, Question: question, Access: servicetest.Access})
}

// byReference completes a run whose report and claims are artifacts.
func byReference(t testing.TB, s *service.Service, thread, run string) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.StartAttempt{Run: run, Max: 3})
	c := gatewaytest.Completed(thread)
	c.Report = blob(t, s, thread, []byte(gatewaytest.Report))
	claims, err := json.Marshal([]string{"a claim", "another claim"})
	require.NoError(t, err)
	b := blob(t, s, thread, claims)
	c.Pages[1].Claims = event.Claims{Blob: &b}
	servicetest.Append(t, s, thread, notebook.CompleteRun{Run: run, Completed: c})
}

func blob(t testing.TB, s *service.Service, thread string, content []byte) event.Blob {
	t.Helper()
	ref, err := s.Artifacts.Put(t.Context(), thread, content)
	require.NoError(t, err)
	return event.Blob{Ref: ref.Ref, SHA256: ref.SHA256, Size: ref.Size}
}

// publish puts a message into the stream as another program would.
func publish(t testing.TB, s *service.Service, subject string, body string) uint64 {
	t.Helper()
	var at uint64
	parts, err := topology.Parse(subject)
	require.NoError(t, err)
	_, err = s.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	s.Tail.View(parts.Thread, func(th *notebook.Thread) { at = th.Seq })
	seq, err := batch.Publish(t.Context(), s.JS, []batch.Message{{Subject: subject, Data: []byte(body)}},
		batch.Expect{Filter: topology.ThreadFilter(parts.Thread), LastSeq: at})
	require.NoError(t, err)
	require.NoError(t, s.Tail.WaitFor(t.Context(), seq))
	return seq
}

func TestTheFileIsThatOfAFreshRebuild(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	dir := t.TempDir()
	alongPath, oftenPath, freshPath := filepath.Join(dir, "along.db"), filepath.Join(dir, "often.db"), filepath.Join(dir, "fresh.db")
	along, _ := open(t, s, alongPath)
	stops := 0
	reopened := func() { // the other one is stopped and opened again all the time
		p, closed := open(t, s, oftenPath)
		caughtUp(t, s, p, oftenPath)
		closed()
		stops++
	}

	create(t, s, "one")
	request(t, s, "one", "r1", "")
	reopened()
	gatewaytest.Complete(t, s, "one", "r1")
	request(t, s, "one", "r2", "A follow-up?")
	byReference(t, s, "one", "r2")
	reopened()
	gatewaytest.Derive(t, s, "one", "r2")
	servicetest.Append(t, s, "one", notebook.RetryStage{Stage: event.StageDistill, Entity: "r1"})
	gatewaytest.Derive(t, s, "one", "r1")
	servicetest.Append(t, s, "one", notebook.AskQuestion{ID: "q1", Text: "A question of mine?"})
	servicetest.Append(t, s, "one", notebook.MoveQuestion{ID: "q1", Position: 1})
	servicetest.Append(t, s, "one", notebook.DeleteRun{Run: "r1"})

	create(t, s, "two")
	request(t, s, "two", "r3", "")
	servicetest.Append(t, s, "two", notebook.StartAttempt{Run: "r3", Max: 3})
	servicetest.Append(t, s, "two", notebook.FailAttempt{Run: "r3", N: 1, Code: "server_error", Detail: "500", Retryable: true, Delays: []time.Duration{time.Hour}})
	servicetest.Append(t, s, "two", notebook.CancelRun{Run: "r3"})
	publish(t, s, "ext.note.two.0.0", `{"mine": true}`)
	publish(t, s, "run.exploded.two.r3.0", `{"id":"e1","type":"factstream.run.exploded.v1","thread":"two","n":0,"data":{}}`)
	publish(t, s, "run.failed.two.r3.0", `not an event`)
	publish(t, s, "ext.empty.two.0.0", ``)

	create(t, s, "gone")
	request(t, s, "gone", "r4", "")
	gatewaytest.Complete(t, s, "gone", "r4")
	reopened()
	servicetest.Append(t, s, "gone", notebook.DeleteThread{})
	publish(t, s, "ext.late.gone.0.0", `{}`)
	create(t, s, "gone-at-once")
	servicetest.Append(t, s, "gone-at-once", notebook.DeleteThread{})
	publish(t, s, "ext.note.nobody.0.0", `{}`)
	reopened()

	caughtUp(t, s, along, alongPath)
	fresh, closed := open(t, s, freshPath)
	caughtUp(t, s, fresh, freshPath)
	want := dump(t, freshPath)
	same(t, want, dump(t, alongPath))
	same(t, want, dump(t, oftenPath))
	require.Greater(t, stops, 3)
	require.NotContains(t, want, "thread=gone|run=")
	require.Contains(t, want, "another claim")

	closed() // and that of a rebuild after the purge
	require.NoError(t, os.Remove(freshPath))
	for _, thread := range []string{"gone", "gone-at-once"} {
		require.NoError(t, deletion.Purge(t.Context(), s.JS, s.Artifacts, thread))
	}
	purged, _ := open(t, s, freshPath)
	caughtUp(t, s, purged, freshPath)
	same(t, want, dump(t, freshPath))
}

// same compares two dumps and shows only what differs.
func same(t *testing.T, want, got string) {
	t.Helper()
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	only := func(x, y []string) (lines []string) {
		for _, line := range x {
			if !slices.Contains(y, line) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	require.Equal(t, only(a, b), only(b, a))
	require.Len(t, b, len(a))
}

func TestAFileThatDoesNotBelongToTheStreamIsMadeAgain(t *testing.T) {
	t.Parallel()
	change := func(statement string, args ...any) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := sql.Open("sqlite3", "file:"+path)
			require.NoError(t, err)
			defer db.Close() //nolint:errcheck // the test would notice
			_, err = db.Exec(statement, args...)
			require.NoError(t, err)
		}
	}
	for name, spoil := range map[string]func(*testing.T, string){
		"lost":            func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"another version": change(`UPDATE meta SET value = '0' WHERE key = 'fold_version'`),
		"other tables":    change(`DROP TABLE meta`),
		"a table less":    change(`DROP TABLE facts`),
		"an index less":   change(`DROP INDEX events_cause`),
		"a column more":   change(`ALTER TABLE facts ADD COLUMN mine TEXT`),
		"another stream":  change(`UPDATE meta SET value = '2020-01-01T00:00:00Z' WHERE key = 'stream_created'`),
		"beyond the end":  change(`UPDATE meta SET value = '99999' WHERE key = 'cursor'`),
		"no cursor":       change(`UPDATE meta SET value = 'x' WHERE key = 'cursor'`),
		"another event":   change(`UPDATE events SET body = x'7b7d' WHERE seq = (SELECT max(seq) FROM events)`),
		"no database": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600))
		},
		"damaged in parts": damage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servicetest.NewBus(t).Open("gateway")
			servicetest.Run(t, s)
			path := filepath.Join(t.TempDir(), "notebook.db")
			create(t, s, "one")
			request(t, s, "one", "r1", "")
			p, closed := open(t, s, path)
			caughtUp(t, s, p, path)
			closed()
			want := dump(t, path)
			spoil(t, path)
			p, closed = open(t, s, path)
			caughtUp(t, s, p, path)
			p.View("one", func(th *notebook.Thread) { require.Equal(t, []string{"r1"}, th.RunIDs) })
			closed()
			same(t, want, dump(t, path))
		})
	}
}

// damage overwrites every page but the first.
func damage(t *testing.T, path string) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 4096; i < len(content); i++ {
		content[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

func TestASecondWriterIsRefused(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path := filepath.Join(t.TempDir(), "notebook.db")
	_, closed := open(t, s, path)
	_, err := projection.Open(t.Context(), projection.Config{Path: path, JS: s.JS, Artifacts: s.Artifacts, Log: s.Log})
	require.ErrorIs(t, err, projection.ErrLocked)
	closed()
	open(t, s, path)
}

func TestWhatCannotBeAppliedIsKeptAndPassedOver(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path := filepath.Join(t.TempDir(), "notebook.db")
	p, _ := open(t, s, path)
	create(t, s, "one")
	bad := publish(t, s, "run.failed.one.r1.0", "\xff\xfe")
	// Cycle 0 does not exist: applying it fails beyond the parser.
	wrong := publish(t, s, "run.requested.one.r2.0", `{"id":"e2","type":"factstream.run.requested.v1","thread":"one","run":"r2","n":0,"data":{"cycle":0}}`)
	newer := publish(t, s, "run.failed.one.r1.0", `{"id":"e3","type":"factstream.run.failed.v99","thread":"one","n":0,"data":{}}`)
	others := publish(t, s, "ext.note.one.0.0", `{"hello": 1}`)
	request(t, s, "one", "r1", "")
	caughtUp(t, s, p, path)
	events, total, err := p.BadEvents(t.Context(), nil, 2)
	require.NoError(t, err)
	require.Equal(t, 3, total)
	require.Equal(t, []uint64{bad, wrong}, []uint64{events[0].Seq, events[1].Seq})
	require.NotEmpty(t, events[0].Error)
	events, total, err = p.BadEvents(t.Context(), []uint64{bad, wrong, 99}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, total, "those that a person has passed do not count")
	require.Equal(t, newer, events[0].Seq)
	require.Contains(t, events[0].Error, "does not know")
	for seq, want := range map[uint64]bool{bad: true, wrong: true, newer: true, others: false, 99: false} {
		is, err := p.IsBad(t.Context(), seq)
		require.NoError(t, err)
		require.Equal(t, want, is, seq)
	}
	p.View("one", func(th *notebook.Thread) { require.Contains(t, th.RunIDs, "r1") })
	raw, _, err := p.Events(t.Context(), "one", 0, 100)
	require.NoError(t, err)
	for seq, want := range map[uint64]bool{bad: false, wrong: false, newer: true, others: true} {
		require.Equal(t, want, slices.ContainsFunc(raw, func(e projection.RawEvent) bool { return e.Seq == seq }), seq)
	}
}

// Nothing that parses as an event may keep the file from going on.
func TestEventsThatSayNoTimeAreWritten(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path := filepath.Join(t.TempDir(), "notebook.db")
	p, _ := open(t, s, path)
	said := func(subject, run, data string) {
		tokens := strings.Split(subject, ".")
		publish(t, s, subject, fmt.Sprintf(`{"id":"id-%s","type":"factstream.%s.%s.v1","thread":"one","run":"%s","n":%s,"data":%s}`,
			subject, tokens[0], tokens[1], run, tokens[4], data))
	}
	said("thread.created.one.0.0", "", `{"question":"Why?"}`)
	said("question.asked.one.q1.0", "", `{"text":"Why not?"}`)
	said("run.requested.one.r1.0", "r1", `{"text":"Why?","cycle":1}`)
	said("attempt.started.one.r1.1", "r1", `{}`)
	said("run.completed.one.r1.1", "r1", `{"attempt":1}`)
	said("facts.distilled.one.r1.1", "r1", `{"facts":[{"id":"f1","statement":"A."},{"id":"f2","statement":"B."}]}`)
	said("contradictions.found.one.r1.1", "r1", `{"verdicts":[{"pair":"p1","elder":"f1","newer":"f2"}]}`)
	said("brief.written.one.1.1", "", `{"engine":"x"}`)
	said("coverage.mapped.one.1.1", "", `{"engine":"x"}`)
	caughtUp(t, s, p, path)
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	for table, rows := range map[string]string{"questions": "2", "runs": "1", "attempts": "1", "facts": "2", "pairs": "1", "briefs": "1", "coverage": "1"} {
		require.Equal(t, []string{rows}, column(t, db, `SELECT count(*) FROM `+table), table)
	}
}

func TestATextThatCannotBeFetchedHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	p, _ := open(t, s, filepath.Join(t.TempDir(), "notebook.db"))
	create(t, s, "one")
	request(t, s, "one", "r1", "")
	servicetest.Append(t, s, "one", notebook.StartAttempt{Run: "r1", Max: 3})
	c := gatewaytest.Completed("one")
	c.Report = blob(t, s, "one", []byte("# Later"))
	all, err := s.JS.ObjectStore(t.Context(), topology.StoreArtifacts)
	require.NoError(t, err)
	require.NoError(t, all.Delete(t.Context(), c.Report.Ref))
	done := servicetest.Append(t, s, "one", notebook.CompleteRun{Run: "r1", Completed: c})
	require.NoError(t, p.WaitFor(t.Context(), done.Seq))
	_, err = p.Report(t.Context(), "r1")
	require.ErrorIs(t, err, projection.ErrPending)
	blob(t, s, "one", []byte("# Later"))
	markdown, err := p.Report(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, "# Later", markdown)
}

func TestTheNotebookAsItWas(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path := filepath.Join(t.TempDir(), "notebook.db")
	p, _ := open(t, s, path)
	create(t, s, "one")
	request(t, s, "one", "r1", "")
	caughtUp(t, s, p, path)
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	stored := column(t, db, `SELECT stored FROM events ORDER BY seq`)
	first, err := time.Parse(time.RFC3339Nano, stored[0])
	require.NoError(t, err)
	for _, c := range []struct {
		at     time.Time
		exists bool
		runs   int
	}{{first.Add(-time.Nanosecond), false, 0}, {first, true, 0}, {first.Add(time.Hour), true, 1}} {
		n, err := p.AsOf(t.Context(), "one", c.at)
		require.NoError(t, err)
		require.Equal(t, c.exists, n.Thread("one").Exists())
		require.Len(t, n.Thread("one").RunIDs, c.runs)
	}
}

func TestSourcesAreUnitedByTheirCanonicalURL(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path := filepath.Join(t.TempDir(), "notebook.db")
	p, _ := open(t, s, path)
	create(t, s, "one")
	canonical, err := text.CanonicalURL("https://example.com/a")
	require.NoError(t, err)
	id := notebook.SourceID("one", canonical)
	for i, pages := range [][]event.Page{
		{{N: 1, URL: "http://www.example.com/a", Claims: event.Claims{Texts: []string{"x"}}}, {N: 2, URL: "https://example.com/a#b", Title: "A title", Claims: event.Claims{Texts: []string{"x", "y"}}}},
		{{N: 1, URL: "https://example.com/a?utm_source=z", Title: "Another title", Summary: "A summary", Claims: event.Claims{Texts: []string{"z"}}}},
	} {
		run := fmt.Sprintf("r%d", i)
		request(t, s, "one", run, "")
		servicetest.Append(t, s, "one", notebook.StartAttempt{Run: run, Max: 3})
		for j := range pages {
			pages[j].Source, pages[j].Canonical = id, canonical
		}
		servicetest.Append(t, s, "one", notebook.CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: 1, Cost: 250, Pages: pages}})
	}
	caughtUp(t, s, p, path)
	sources, err := p.Sources(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, []projection.Source{{
		ID: id, URL: "http://www.example.com/a", Canonical: canonical, Title: "A title", Summary: "A summary", Claims: []string{"x", "y", "z"}, Runs: []string{"r0", "r1"},
	}}, sources)
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // only read
	require.Equal(t, []string{"http://www.example.com/a 2"}, column(t, db, `SELECT url || ' ' || cited_count FROM sources`))
}
