package api_test

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/shared/notebook"
)

// However much others do, who watches a quiet thread does not fall behind what is kept in memory, and asks the file nothing.
func TestAWatcherOfAQuietThreadIsToldFromMemory(t *testing.T) {
	t.Parallel()
	g := start(t)
	quiet, busy := g.create("Why?"), g.create("How?")
	next, _ := g.listen("/api/v1/events?thread=" + quiet.ID)
	require.NotEmpty(t, next().comment)
	for range 3 { // more events than are kept
		notes := make([]batch.Message, 500)
		for i := range notes {
			notes[i] = batch.Message{Subject: "ext.note." + busy.ID + ".0.0", Data: []byte(`{}`)}
		}
		_, err := batch.Publish(t.Context(), g.service.JS, notes, batch.Expect{})
		require.NoError(t, err)
		g.caughtUp()
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.service.Config.Data, api.FileName))
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // the test would notice
	_, err = db.Exec(`CREATE TRIGGER hides AFTER INSERT ON events WHEN new.thread = '` + quiet.ID + `' BEGIN DELETE FROM events WHERE seq = new.seq; END`)
	require.NoError(t, err)
	run := g.run(quiet.ID)
	e := named(next)
	require.Equal(t, "factstream.run.requested.v1", e.name)
	require.Contains(t, e.data, run.ID)
}

func TestAnEventIsToldWholeWhateverItsLineBreaks(t *testing.T) {
	t.Parallel()
	g := start(t)
	next, _ := g.listen("/api/v1/events")
	require.NotEmpty(t, next().comment)
	_, err := g.service.JS.Publish(t.Context(), "ext.note.one.0.0", []byte("{\"a\":\r1,\r\n\"b\":\n2}"))
	require.NoError(t, err)
	require.Equal(t, `{"a":1,"b":2}`, named(next).data, "each line of it was a line of data, and no carriage return is left to end one elsewhere")
}

// notebook.db is behind the stream while it is made again: what was seen before is no gap.
func TestWhoHasSeenMoreThanTheFileHasYetIsToldOfNoGap(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread := g.create("Why?")
	g.caughtUp()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.service.Config.Data, api.FileName)+"?_txlock=immediate")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // the test would notice
	busy, err := db.Begin()
	require.NoError(t, err)
	g.append(thread.ID, notebook.AskQuestion{ID: "q1", Text: "And how?"})
	seen, err := g.service.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	next, _ := g.listen("/api/v1/events", header("Last-Event-ID", strconv.FormatUint(seen, 10)))
	require.Equal(t, "from "+strconv.FormatUint(seen, 10), next().comment)
	require.NoError(t, busy.Rollback())
	g.append(thread.ID, notebook.AskQuestion{ID: "q2", Text: "And where?"})
	e := named(next)
	require.NotEqual(t, "gap", e.name, e.data)
	require.Contains(t, e.data, "And where?")
}
