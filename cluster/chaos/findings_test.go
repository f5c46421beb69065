package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// told makes a record of events of the thread t; each is about the run or cycle r.
func told(events ...event.Data) *record {
	r := newRecord(nil)
	for i, data := range events {
		e := event.Event{ID: string(rune('a' + i)), Thread: "t", Entity: "r", Data: data, Seq: uint64(i + 1), Time: time.Unix(int64(i), 0), Stored: time.Unix(int64(i), 0)}
		switch data.(type) {
		case event.ThreadCreated, event.ThreadConfigured, event.ThreadDeleted:
			e.Entity = "0"
		case event.AttemptStarted:
			e.N = 1
		}
		e.Type = event.TypeOf(data)
		body, err := event.Marshal(e)
		if err != nil {
			panic(err)
		}
		if err := r.apply(context.Background(), []notebook.Message{{Seq: e.Seq, Subject: e.Subject(), Data: body, Time: e.Stored}}); err != nil {
			panic(err)
		}
	}
	return r
}

var (
	created   = event.ThreadCreated{Question: "Why?", Settings: event.Settings{Provider: event.Tabstack, Mode: event.Fast, Budget: 300, Batch: 1}}
	requested = event.RunRequested{Question: "q", Text: "Why?", Provider: event.Tabstack, Mode: event.Fast, Cycle: 1, CycleSize: 1, RunKind: "manual", Cost: 250}
	started   = event.AttemptStarted{Holder: "x"}
	completed = event.RunCompleted{Attempt: 1, Cost: 250}
)

func TestTheAuditFindsWhatIsWrongWithAStory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []event.Data
		wrong  string // empty: nothing
	}{
		"all is well":           {[]event.Data{created, requested, started, completed}, ""},
		"never ended":           {[]event.Data{created, requested, started}, "never ended"},
		"ended twice":           {[]event.Data{created, requested, started, completed, event.RunFailed{Code: "lost"}}, "and again as"},
		"another cost":          {[]event.Data{created, requested, started, event.RunCompleted{Attempt: 1, Cost: 350}}, "cost 350"},
		"a failure that costs":  {[]event.Data{created, requested, started, event.RunFailed{Code: "lost", Cost: 250}}, "failed and cost 250"},
		"over the budget":       {[]event.Data{created, event.ThreadConfigured{Budget: new(int)}, requested, started, completed}, "250 reserved and 0 spent of 0"},
		"an attempt twice":      {[]event.Data{created, requested, started, started, completed}, "attempt.started t r 1 is at"},
		"a wrong tombstone":     {[]event.Data{created, requested, started, completed, event.ThreadDeleted{Spent: 0}}, "deleted with 0 spent"},
		"a start after its end": {[]event.Data{created, requested, completed, started}, "started after its end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found findings
			r := told(c.events...)
			found.story(r)
			found.attempts(r)
			if c.wrong == "" {
				require.Empty(t, found)
				return
			}
			require.Contains(t, join(found), c.wrong)
		})
	}
}

func join(found findings) (all string) {
	for _, one := range found {
		all += one + "\n"
	}
	return all
}

func TestTheAuditFindsAnIdThatTwoMessagesHave(t *testing.T) {
	t.Parallel()
	r := told(created)
	twice := r.messages
	again := twice[0]
	again.Seq = 2
	require.NoError(t, r.apply(t.Context(), []notebook.Message{again}))
	var found findings
	found.story(r)
	require.Contains(t, join(found), "two messages have one id")
}

func TestWhatWasPurgedBeforeItWasSeenIsNotCounted(t *testing.T) {
	t.Parallel()
	whole := told(created, requested, started, completed, event.ThreadDeleted{Spent: 250})
	require.False(t, whole.missed("t", 5))
	seen := newRecord(nil)
	require.NoError(t, seen.apply(t.Context(), []notebook.Message{whole.messages[0], whole.messages[4]}))
	require.True(t, seen.missed("t", 5))
	var found findings
	found.story(seen)
	require.Empty(t, found)
}

func TestTheAuditPassesOverWhatIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRecord(nil)
	for seq := range uint64(2) {
		body := fmt.Sprintf(`{"id":"poison-%d","type":"factstream.facts.distilled.v99","thread":"t","n":0,"data":{}}`, seq)
		require.NoError(t, r.apply(t.Context(), []notebook.Message{{Seq: seq + 1, Subject: "facts.distilled.t.r.0", Data: []byte(body)}}))
	}
	var found findings
	found.story(r)
	require.Empty(t, found)
}

func TestTheAuditFindsAPromiseThatWasNotKept(t *testing.T) {
	t.Parallel()
	var found findings
	r := told(created, requested)
	found.promises([]promise{{"a new thread", "thread.created", "t", "0"}, {"a run", "run.requested", "t", "r"}}, r)
	require.Empty(t, found)
	found.promises([]promise{{"a run", "run.requested", "t", "lost"}}, r)
	require.Contains(t, join(found), "a run was accepted")
}

func TestADumpHoldsEveryRowInAnOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	write := func(name string, rows ...string) string {
		path := filepath.Join(t.TempDir(), name)
		db, err := sql.Open("sqlite3", path)
		require.NoError(t, err)
		_, err = db.Exec(`CREATE TABLE things (a TEXT, b BLOB); CREATE TABLE empty (x)`)
		require.NoError(t, err)
		for _, row := range rows {
			_, err := db.Exec(`INSERT INTO things VALUES (?, x'00ff')`, row)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
		dump, err := Dump(path)
		require.NoError(t, err)
		return dump
	}
	require.Equal(t, "things: 'one' | X'00FF'\nthings: 'two' | X'00FF'\n", write("a", "two", "one"))
	require.Empty(t, difference(write("a", "two", "one"), write("b", "one", "two")))
	require.Equal(t, []string{"+ things: 'three' | X'00FF'", "- things: 'two' | X'00FF'"}, difference(write("a", "two", "one"), write("b", "one", "three")))
	_, err := Dump(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}

func TestADiskIsFilledAndEmptied(t *testing.T) {
	t.Parallel()
	disk, err := Mount(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		require.ErrorIs(t, err, ErrNoDisk)
		return
	}
	var held *os.File // the ballast, as a process has it open that is just being started
	t.Cleanup(func() {
		require.NoError(t, disk.Unmount())
		require.NoError(t, held.Close())
	})
	free := func() int64 {
		free, err := embedded.DiskFree(disk.Dir)
		require.NoError(t, err)
		return free
	}
	all := free()
	require.NoError(t, disk.Fill(lowLeaves))
	require.InDelta(t, lowLeaves, free(), 1<<20)
	require.NoError(t, disk.Fill(0))
	require.Less(t, free(), int64(1<<20))
	require.NoError(t, disk.Fill(0), "it is full already")
	held, err = os.Open(filepath.Join(disk.Dir, "ballast"))
	require.NoError(t, err)
	require.NoError(t, disk.Empty())
	require.NoError(t, disk.Empty())
	require.InDelta(t, all, free(), 1<<20)
}
