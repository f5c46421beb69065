package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

func at(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }

// moment is an event of the run r, or of another, of thread t.
type moment struct {
	at   float64
	n    int // of an attempt
	run  string
	data event.Data
}

// lived makes a record of what happened at which time.
func lived(moments ...moment) *record {
	r := newRecord(nil)
	for i, m := range moments {
		e := event.Event{ID: string(rune('a' + i)), Thread: "t", Entity: "r", N: m.n, Data: m.data, Type: event.TypeOf(m.data), Seq: uint64(i + 1), Time: at(m.at), Stored: at(m.at)}
		if m.run != "" {
			e.Entity = m.run
		}
		switch m.data.(type) {
		case event.ThreadCreated, event.ThreadDeleted:
			e.Entity = "0"
		}
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

// call is a whole answer to what the run asks.
func call(n int, from, to float64) standin.Call {
	return standin.Call{N: n, Body: `{"query":"Why?","mode":"fast"}`, Started: at(from), Ended: at(to), Status: 200, Sent: 1 << 20, Outcome: standin.Whole}
}

func cut(n int, from, to float64) standin.Call {
	c := call(n, from, to)
	c.Sent, c.Outcome = 100, standin.Left
	return c
}

func by(pid string) event.AttemptStarted {
	return event.AttemptStarted{Holder: "researcher@host:" + pid}
}

func TestAnAnswerThatWasNotKeptIsPutDownToAFaultThatCanHaveDestroyedIt(t *testing.T) {
	t.Parallel()
	// Process 7 asks from 1 to 3 and comes to nothing; process 8 asks again from 20 to 21.
	calls := []standin.Call{call(1, 1, 3), call(2, 20, 21)}
	story := []moment{
		{at: 0, data: created}, {at: 0, data: requested},
		{at: 0.9, n: 1, data: by("7")}, {at: 19, n: 2, data: by("8")}, {at: 22, data: event.RunCompleted{Attempt: 2, Cost: 250}},
	}
	researcher := func(pid int, from, to float64) Fault {
		return Fault{Target: "researcher-2", PID: pid, What: "killed", From: at(from), To: at(to)}
	}
	of := func(target string, from, to float64) Fault {
		return Fault{Target: target, PID: 99, What: "stopped", From: at(from), To: at(to)}
	}
	one, three := []string{Bus}, []string{"bus-1", "bus-2", "bus-3"}
	for name, c := range map[string]struct {
		fault    Fault
		servers  []string
		explains bool
	}{
		"its process was ended in the call":                       {researcher(7, 2, 2.5), one, true},
		"its process was ended before all was read":               {researcher(7, 5, 5.5), one, true},
		"its process was ended long after all was in the spool":   {researcher(7, 15, 16), one, false},
		"its process was stopped from the call until it was late": {researcher(7, 2.9, 25), one, true},
		"its process has not come back":                           {Fault{Target: "researcher", PID: 7, From: at(2)}, one, true},
		"another process was ended":                               {researcher(8, 2, 2.5), one, false},
		"the one before it under its name was ended":              {researcher(6, 0.5, 0.8), one, false},
		"another program was ended":                               {of("judge", 2, 2.5), one, false},
		"the bus was stopped in the call":                         {of(Bus, 1.5, 2), one, true},
		"the bus was away before the attempt":                     {of(Bus, 0, 0.8), one, false},
		"the bus was away when all was in the spool":              {of(Bus, 10, 12), one, false},
		"one of three servers was ended in the call":              {of("bus-3", 1.5, 2), three, true},
		"one of three was ended, and elections go on":             {of("bus-2", -3, -2), three, true},
		"one of three was ended long before":                      {of("bus-2", -30, -29), three, false},
		"a server that this bus does not have":                    {of("bus-2", 1.5, 2), one, false},
		"the disk was full in the call":                           {of(theDisk, 1.5, 2), one, true},
		"the disk was full until it was asked for again":          {of(theDisk, 12, 18), one, true},
		"the disk has just been emptied":                          {of(theDisk, -4, -3), one, true},
		"the disk was full after that":                            {of(theDisk, 19.5, 25), one, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found findings
			p := found.paid(lived(story...), calls, evidence{[]Fault{c.fault}, c.servers})
			require.Empty(t, p.Overlaps)
			require.Zero(t, p.Void)
			if !c.explains {
				require.Empty(t, p.Rebought)
				require.Contains(t, join(found), "call 1 (attempt 1 of run r by researcher@host:7) brought a whole answer that was not kept")
				return
			}
			require.Empty(t, found)
			require.Len(t, p.Rebought, 1)
			require.Equal(t, c.fault, p.Rebought[0].By)
			require.Contains(t, p.Rebought[0].String(), "call 1 (attempt 1 of run r by researcher@host:7): "+c.fault.Target)
		})
	}
}

func TestOfSeveralFaultsThatOfItsOwnProcessComesFirstAndThenTheEarliest(t *testing.T) {
	t.Parallel()
	r := lived(moment{at: 0, data: created}, moment{at: 0, data: requested}, moment{at: 0.9, n: 1, data: by("7")},
		moment{at: 9, n: 2, data: by("8")}, moment{at: 22, data: event.RunCompleted{Attempt: 2, Cost: 250}})
	bus := Fault{Target: Bus, PID: 1, What: "killed", From: at(1), To: at(2)}
	stopped := Fault{Target: "researcher", PID: 7, What: "stopped", From: at(2), To: at(4)}
	killed := Fault{Target: "researcher", PID: 7, What: "killed", From: at(3), To: at(4)}
	var found findings
	p := found.paid(r, []standin.Call{call(1, 1, 3), call(2, 10, 11)}, evidence{[]Fault{bus, killed, stopped}, []string{Bus}})
	require.Empty(t, found)
	require.Equal(t, []Explained{{"call 1 (attempt 1 of run r by researcher@host:7)", stopped}}, p.Rebought)
	require.Equal(t, "researcher (process 7) was stopped at "+at(2).Format(clock)+" for 2.0 s", stopped.String())
	require.Contains(t, Fault{Target: "judge", PID: 7, What: "killed", From: at(2)}.String(), ", and it lasts")
}

func TestTheAuditFindsWhatWasPaidTwice(t *testing.T) {
	t.Parallel()
	begin := []moment{{at: 0, data: created}, {at: 0, data: requested}, {at: 0.9, n: 1, data: by("7")}}
	then := func(more ...moment) []moment { return append(begin[:len(begin):len(begin)], more...) }
	done := func(s float64, n int) moment {
		return moment{at: s, data: event.RunCompleted{Attempt: n, Cost: 250}}
	}
	again := moment{at: 4, n: 2, data: by("8")}
	failed := moment{at: 3.5, n: 1, data: event.AttemptFailed{Code: "unreachable"}}
	cancelled := moment{at: 8, data: event.RunFailed{Code: event.CodeCancelled, Attempt: 2}}
	reset := call(1, 1, 3)
	reset.Outcome = standin.Broken
	open := cut(1, 1, 0)
	open.Ended, open.Outcome = time.Time{}, standin.Open
	other := call(2, 5, 6)
	other.Body = `{"query":"Why not?","mode":"fast"}`
	held := Fault{Target: "researcher", PID: 7, What: "stopped", From: at(1.5), To: at(7)}
	late := Fault{Target: "researcher-2", PID: 8, What: "stopped", From: at(4.1), To: at(4.9)}
	for name, c := range map[string]struct {
		story                    []moment
		calls                    []standin.Call
		faults                   []Fault
		rebought, overlaps, void int
		wrong                    string
	}{
		"one call":                                 {story: then(done(4, 1)), calls: []standin.Call{call(1, 1, 3)}},
		"no call":                                  {story: then(done(4, 1)), wrong: "is completed, and the provider gave it no whole answer"},
		"a call for nothing":                       {story: then(done(4, 1)), calls: []standin.Call{call(1, 1, 3), other}, wrong: "call 2 is of no attempt"},
		"two calls of one attempt":                 {story: then(done(7, 1)), calls: []standin.Call{call(1, 1, 3), call(2, 5, 6)}, wrong: "call 1 is of no attempt"},
		"two, the first cut off":                   {story: then(failed, again, done(7, 2)), calls: []standin.Call{cut(1, 1, 3), call(2, 5, 6)}},
		"two, the first whole":                     {story: then(again, done(7, 2)), calls: []standin.Call{call(1, 1, 3), call(2, 5, 6)}, wrong: "brought a whole answer that was not kept"},
		"two, the first whole and failed":          {story: then(failed, again, done(7, 2)), calls: []standin.Call{call(1, 1, 3), call(2, 5, 6)}, wrong: "brought a whole answer that was not kept"},
		"two, the first reset after its last byte": {story: then(failed, again, done(7, 2)), calls: []standin.Call{reset, call(2, 5, 6)}, rebought: 1},
		"cancelled by a person":                    {story: then(cancelled), calls: []standin.Call{call(1, 1, 3)}, void: 1},
		"bought again, and then cancelled":         {story: then(again, cancelled), calls: []standin.Call{call(1, 1, 3), call(2, 5, 6)}, void: 1, wrong: "call 1 (attempt 1"},
		"deleted by a person":                      {story: then(moment{at: 9, data: event.ThreadDeleted{}}), calls: []standin.Call{call(1, 1, 3)}, void: 1},
		"given up":                                 {story: then(moment{at: 9, data: event.RunFailed{Code: event.CodeCrashLoop, Attempt: 1}}), calls: []standin.Call{call(1, 1, 3)}, wrong: "was not kept"},
		"two at once":                              {story: then(again, done(7, 2)), calls: []standin.Call{cut(1, 1, 5.5), call(2, 5, 6)}, wrong: "was made while call 1 (attempt 1 of run r by researcher@host:7) was open"},
		"two at once, the first held":              {story: then(again, done(7, 2)), calls: []standin.Call{cut(1, 1, 7), call(2, 5, 6)}, faults: []Fault{held}, overlaps: 1},
		"two at once, the first held for good":     {story: then(again, done(7, 2)), calls: []standin.Call{open, call(2, 5, 6)}, faults: []Fault{held}, overlaps: 1},
		"two at once, the second late":             {story: then(again, done(7, 1)), calls: []standin.Call{call(1, 1, 6), cut(2, 5, 5.5)}, faults: []Fault{late}, overlaps: 1},
		"two at once, another researcher held":     {story: then(again, done(7, 2)), calls: []standin.Call{cut(1, 1, 5.5), call(2, 5, 6)}, faults: []Fault{{Target: "researcher-2", PID: 9, From: at(1), To: at(7)}}, wrong: "was open, and nobody had been stopped"},
		"the call before was just being closed":    {story: then(again, done(7, 2)), calls: []standin.Call{cut(1, 1, 5.05), call(2, 5, 6)}},
		"a third while the first is open, not the second": {
			story: then(again, moment{at: 6.5, n: 3, data: by("9")}, done(8, 3)), calls: []standin.Call{cut(1, 1, 7.5), cut(2, 5, 6), call(3, 7, 7.2)},
			faults: []Fault{held}, overlaps: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found findings
			p := found.paid(lived(c.story...), c.calls, evidence{c.faults, []string{Bus}})
			require.Len(t, p.Rebought, c.rebought)
			require.Len(t, p.Overlaps, c.overlaps)
			require.Equal(t, c.void, p.Void)
			if c.wrong == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.wrong)
		})
	}
}

func TestACallOfAThreadThatWasPurgedBeforeItWasSeenIsNobodysFault(t *testing.T) {
	t.Parallel()
	whole := lived(moment{at: 0, data: created}, moment{at: 0, data: requested}, moment{at: 0.9, n: 1, data: by("7")}, moment{at: 4, data: event.ThreadDeleted{}})
	seen := newRecord(nil)
	require.NoError(t, seen.apply(t.Context(), []notebook.Message{whole.messages[0], whole.messages[3]}))
	var found findings
	calls := []standin.Call{call(1, 1, 3), call(2, 2, 2.5)}
	held := Fault{Target: "researcher", PID: 7, What: "stopped", From: at(1.5), To: at(7)}
	p := found.paid(seen, calls, evidence{[]Fault{held}, []string{Bus}})
	require.Empty(t, found)
	require.Equal(t, 2, p.Void)
	require.Equal(t, []Explained{{"call 2 (an attempt that was purged) while call 1 (an attempt that was purged) was open", held}}, p.Overlaps)
}

// Two runs ask the same, and the attempt of one lies within the other's: the inner one can have made only the call within it.
func TestEachKeptAttemptHasACallOfItsOwn(t *testing.T) {
	t.Parallel()
	why := asked{Query: "Why?", Mode: "fast"}
	outer := &attempt{run: "outer", n: 1, asked: why, started: at(0), gone: at(10), kept: true}
	inner := &attempt{run: "inner", n: 1, asked: why, started: at(5), gone: at(8), kept: true}
	for _, attempts := range [][]*attempt{{outer, inner}, {inner, outer}} {
		outer.call, inner.call = nil, nil
		require.Empty(t, match(attempts, []standin.Call{call(2, 6, 7), call(1, 1, 2)}))
		require.Equal(t, 1, outer.call.N)
		require.Equal(t, 2, inner.call.N)
	}
}
