package notebook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// A world is one thread on a stream in memory, with workers that crash, repeat, lose messages and fail, and a person who presses every button. The rules
// under test are the real ones: everything is appended through Decide and folded by Evolve.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	now     time.Time
	thread  *Thread
	log     []event.Event
	pending map[string][]uint64 // durable -> unacknowledged messages
	calm    bool                // no more faults
	access  Access
	seed    string // Origin.Seed of what is appended now; empty: a random one

	settled map[string]int
	ids     map[string]bool
	batch   func() // after every append
}

// durables is who reads what, as in topology.
var durables = map[string][]string{
	"runs":      {"run.requested", "stage.retried"},
	"autopilot": {"thread.settled", "stage.retried"},
	"distil":    {"run.completed", "stage.retried"},
	"judge":     {"facts.distilled", "stage.retried"},
	"brief":     {"contradictions.found", "run.failed", "stage.failed", "stage.retried"},
}

var durableNames = []string{"autopilot", "brief", "distil", "judge", "runs"}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), thread: NewThread("t"),
		pending: map[string][]uint64{}, settled: map[string]int{}, ids: map[string]bool{}, access: Access{Live: true},
	}
	settings := event.Settings{
		Provider: event.Tabstack, Mode: event.Fast, Depth: w.rng.IntN(4), Batch: 1 + w.rng.IntN(3), Auto: w.rng.IntN(4) > 0, Engine: "auto",
		Budget: w.rng.IntN(12) * 250,
	}
	w.must(CreateThread{Question: "Why?", Settings: settings})
	return w
}

// do appends what a command leads to, as Appender does, and checks what must hold at every append.
func (w *world) do(cmd Command) error {
	drafts, err := Decide(w.thread, cmd, w.now)
	seed := w.seed
	if seed == "" {
		seed = "random at " + strconv.Itoa(len(w.log))
	}
	for i, d := range drafts {
		w.append(EventID(seed, "t", d, i), d)
	}
	if w.batch != nil && len(drafts) > 0 {
		w.batch()
	}
	return err
}

// from does something whose events have ids by this seed.
func (w *world) from(seed string, do func()) {
	before := w.seed
	w.seed = seed
	do()
	w.seed = before
}

func (w *world) must(cmd Command) { require.NoError(w.t, w.do(cmd)) }

func (w *world) append(id string, d Draft) {
	if w.ids[id] {
		w.t.Fatalf("another event has the id of this one, which every reader would therefore drop: %s %s\n%s", d.Data.Kind(), d.Entity, w.history())
	}
	w.ids[id] = true
	seq := uint64(len(w.log) + 1)
	e := event.Event{ID: id, Time: w.now, Thread: "t", Run: d.Run, Entity: d.Entity, N: d.N, Data: d.Data, Seq: seq}
	w.check(e)
	w.log = append(w.log, e)
	w.thread.Evolve(e)
	for _, name := range durableNames {
		if slices.Contains(durables[name], e.Kind()) {
			w.pending[name] = append(w.pending[name], seq)
		}
	}
	w.checkState(e)
}

func (w *world) check(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunRequested:
		l := w.thread.Ledger
		require.LessOrEqual(w.t, l.Held()+l.Spent+d.Cost, l.Budget, "dispatched over the budget")
		if d.RunKind == event.KindCycle {
			require.Equal(w.t, Running, w.thread.Standing, "autopilot dispatched while %s: a Pause was lost", w.thread.Standing)
		}
	case event.ThreadSettled:
		key := e.Entity + "/" + strconv.Itoa(e.N)
		w.settled[key]++
		require.Equal(w.t, 1, w.settled[key], "closing %s settled twice", key)
	case event.RunCompleted:
		require.False(w.t, w.thread.Runs[e.Entity].Terminal(), "a second terminal event")
	case event.RunFailed:
		require.False(w.t, w.thread.Runs[e.Entity].Terminal(), "a second terminal event")
	}
}

func (w *world) checkState(e event.Event) {
	auto := 0
	for _, c := range w.thread.Cycles {
		if c.Kind == event.KindCycle && len(c.Runs) == c.Size && w.thread.CycleUnsettled(c) && len(c.Closings) == 0 {
			auto++
		}
	}
	require.LessOrEqual(w.t, auto, 1, "two cycles of autopilot at once after %s", e.Kind())
}

// deliver gives one message to a worker. The message stays when the worker crashes before its acknowledgement, which may be after its work was done.
func (w *world) deliver(durable string, i int) {
	seq := w.pending[durable][i]
	crashBefore, crashAfter := !w.calm && w.rng.IntN(12) == 0, !w.calm && w.rng.IntN(8) == 0
	if !w.calm && w.rng.IntN(60) == 0 { // acknowledged and forgotten
		crashBefore, crashAfter = true, false
		w.ack(durable, seq)
	}
	if crashBefore {
		return
	}
	later := false
	w.from(w.log[seq-1].ID, func() { later = w.handle(durable, w.log[seq-1]) })
	if !crashAfter && !later {
		w.ack(durable, seq)
	}
}

func (w *world) ack(durable string, seq uint64) {
	w.pending[durable] = slices.DeleteFunc(w.pending[durable], func(s uint64) bool { return s == seq })
}

func (w *world) handle(durable string, e event.Event) (later bool) {
	retried, isRetry := e.Data.(event.StageRetried)
	switch durable {
	case "runs":
		if isRetry && retried.Stage != event.StageRun {
			return false
		}
		return w.call(e.Entity)
	case "autopilot":
		if isRetry && retried.Stage != event.StageAutopilot {
			return false
		}
		if e.Seq == w.thread.LastSettled && w.fails(40) {
			w.must(FailStage{Stage: event.StageAutopilot, Entity: strconv.Itoa(len(w.thread.Cycles)), N: 0, Class: event.ClassCrashLoop, Reason: "it fell over"})
			return false
		}
		w.must(Autopilot{Access: w.access, Trigger: e.Seq})
	case "distil":
		if isRetry && retried.Stage != event.StageDistill {
			return false
		}
		n := 0
		if isRetry {
			n = e.N
		}
		if w.fails(10) {
			w.must(FailStage{Stage: event.StageDistill, Entity: e.Entity, N: n, Class: w.class(), Reason: "no"})
			return false
		}
		w.must(Distil{Run: e.Entity, N: n, Facts: w.facts(), Engine: "extractive"})
	case "judge":
		if isRetry && retried.Stage != event.StageJudge {
			return false
		}
		if w.fails(10) {
			w.must(FailStage{Stage: event.StageJudge, Entity: e.Entity, N: e.N, Class: w.class(), Reason: "no"})
			return false
		}
		w.must(Judge{Run: e.Entity, N: e.N, Verdicts: w.verdicts(e.Entity), Engine: "extractive"})
	case "brief":
		w.close(e)
	}
	return false
}

func (w *world) fails(oneIn int) bool { return !w.calm && w.rng.IntN(oneIn) == 0 }

func (w *world) class() string {
	return []string{event.ClassModelAway, event.ClassCrashLoop}[w.rng.IntN(2)]
}

func (w *world) call(run string) (later bool) {
	r := w.thread.Runs[run]
	if r == nil {
		return false
	}
	var err error
	w.from("", func() { err = w.do(StartAttempt{Run: run, Max: 3, After: len(r.Attempts)}) })
	if wait, ok := err.(*Wait); ok {
		if w.calm {
			w.now = wait.Until
		}
		return true
	}
	if w.thread.Runs[run] == nil {
		return false
	}
	open, ok := w.thread.Runs[run].OpenAttempt()
	if !ok {
		return false
	}
	if w.fails(6) {
		return true // killed in the stream
	}
	if w.fails(5) {
		w.from("", w.person) // something happens while the call is under way
	}
	if w.fails(5) {
		w.must(FailAttempt{Run: run, N: open.N, Code: "stall", Detail: "nothing came", Retryable: w.rng.IntN(2) == 0, Delays: []time.Duration{time.Second, time.Second}})
		r := w.thread.Runs[run]
		return r != nil && !r.Terminal()
	}
	w.must(CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: open.N, Cost: r.Requested.Cost}})
	return false
}

func (w *world) facts() []event.Fact {
	var facts []event.Fact
	for range w.rng.IntN(4) {
		statement := fmt.Sprintf("Statement %d.", w.rng.IntN(12))
		print := text.Fingerprint(statement)
		facts = append(facts, event.Fact{ID: FactID("t", print), Fingerprint: print, Statement: statement, Confidence: 0.5})
	}
	return facts
}

func (w *world) verdicts(run string) []event.Verdict {
	var verdicts []event.Verdict
	ids := w.thread.FactIDs
	for range min(len(ids), 4) {
		a, b := w.thread.Facts[ids[w.rng.IntN(len(ids))]], w.thread.Facts[ids[w.rng.IntN(len(ids))]]
		if a == b || b.Run != run {
			continue
		}
		verdicts = append(verdicts, event.Verdict{
			Elder: a.ID, ElderFingerprint: a.Fingerprint, Newer: b.ID, NewerFingerprint: b.Fingerprint,
			Relation: []string{event.Duplicate, event.Contradiction, event.Distinct}[w.rng.IntN(3)],
		})
	}
	return verdicts
}

// close is the briefer. It does not look whether its closing is still the newest, since what it saw may be old by the time it appends.
func (w *world) close(e event.Event) {
	for _, c := range w.thread.Cycles {
		i := slices.IndexFunc(c.Closings, func(closing *Closing) bool { return closing.Seq == e.Seq })
		if i < 0 {
			continue
		}
		newest := c.Closings[i]
		at := ClosingStep{Cycle: c.ID, N: newest.N}
		for _, step := range newest.Remaining() {
			if w.fails(25) {
				return // crashed between two steps
			}
			w.seed = e.ID + "/" + step
			if w.fails(12) {
				w.must(FailStage{Stage: step, Entity: strconv.Itoa(c.ID), N: newest.N, Class: w.class(), Reason: "no"})
				continue
			}
			switch step {
			case event.StageQuestions:
				var proposed []event.ProposedQuestion
				for range w.rng.IntN(3) {
					proposed = append(proposed, event.ProposedQuestion{Text: fmt.Sprintf("And %d?", w.rng.IntN(20)), Score: 0.5, Depth: w.rng.IntN(4)})
				}
				w.must(ProposeQuestions{ClosingStep: at, Proposed: event.QuestionsProposed{Questions: proposed}})
			case event.StageBrief:
				w.must(WriteBrief{ClosingStep: at})
			case event.StageCoverage:
				w.must(MapCoverage{ClosingStep: at})
			}
		}
		w.seed = e.ID + "/" + event.StageClose
		w.must(Settle{at})
		return
	}
}

// person does one thing at random. Refusals are part of the game.
func (w *world) person() {
	switch w.rng.IntN(19) {
	case 0, 1, 2:
		_ = w.do(Start{Access: w.access})
	case 3:
		_ = w.do(Pause{})
		if w.thread.Exists() {
			require.Equal(w.t, Paused, w.thread.Standing)
		}
	case 4, 5:
		_ = w.do(RequestRun{Run: text.ID("run", strconv.Itoa(len(w.log))), Access: w.access})
	case 6:
		_ = w.do(RequestRun{Run: text.ID("run", strconv.Itoa(len(w.log))), Question: fmt.Sprintf("Why %d?", w.rng.IntN(5)), Access: w.access})
	case 7:
		if run := w.anyRun(); run != "" {
			_ = w.do(CancelRun{Run: run})
		}
	case 8:
		if run := w.anyRun(); run != "" {
			_ = w.do(DeleteRun{Run: run})
		}
	case 9:
		if run := w.anyRun(); run != "" {
			_ = w.do(RetryStage{Stage: []string{event.StageDistill, event.StageJudge}[w.rng.IntN(2)], Entity: run})
		}
	case 10:
		stage := []string{event.StageQuestions, event.StageBrief, event.StageCoverage}[w.rng.IntN(3)]
		_ = w.do(RetryStage{Stage: stage, Entity: strconv.Itoa(1 + w.rng.IntN(len(w.thread.Cycles)+1))})
	case 11:
		_ = w.do(RebuildThread{})
	case 12:
		budget := w.rng.IntN(12) * 250
		_ = w.do(Configure{Changes: event.ThreadConfigured{Budget: &budget}})
	case 13:
		auto, depth := w.rng.IntN(3) > 0, w.rng.IntN(4)
		_ = w.do(Configure{Changes: event.ThreadConfigured{Auto: &auto, Depth: &depth}})
	case 14:
		_ = w.do(AskQuestion{ID: text.ID("q", strconv.Itoa(len(w.log))), Text: fmt.Sprintf("What about %d?", w.rng.IntN(30))})
	case 15:
		if w.rng.IntN(12) == 0 {
			_ = w.do(DeleteThread{})
		} else {
			w.access.Live = w.rng.IntN(6) > 0
		}
	case 16:
		if line := w.thread.Pending(); len(line) > 0 {
			_ = w.do(MoveQuestion{ID: line[w.rng.IntN(len(line))].ID, Position: w.rng.IntN(len(line) + 1)})
		}
	case 17:
		if line := w.thread.Pending(); len(line) > 0 {
			_ = w.do(DismissQuestion{ID: line[w.rng.IntN(len(line))].ID})
		}
	case 18: // a message that a worker could not read, about anything
		stages := []string{event.StageRun, event.StageAutopilot, event.StageDistill, event.StageJudge, event.StageClose}
		entity := w.anyRun()
		if w.rng.IntN(3) == 0 {
			entity = strconv.Itoa(1 + w.rng.IntN(len(w.thread.Cycles)+1))
		}
		_ = w.do(PutBack{Stage: stages[w.rng.IntN(len(stages))], Entity: entity, Run: text.ID("again", strconv.Itoa(len(w.log))), Access: w.access})
	}
}

func (w *world) anyRun() string {
	if len(w.thread.RunIDs) == 0 {
		return ""
	}
	return w.thread.RunIDs[w.rng.IntN(len(w.thread.RunIDs))]
}

// sweep is the sweeper: it asks again for steps whose message is acknowledged, and for those that failed because the model was away.
func (w *world) sweep() (did bool) {
	owner := map[string]string{event.StageRun: "runs", event.StageDistill: "distil", event.StageJudge: "judge", event.StageClose: "brief", event.StageAutopilot: "autopilot"}
	for _, step := range Next(w.thread) {
		if !slices.Contains(w.pending[owner[step.Stage]], step.Trigger) && !w.now.Before(step.NotBefore) {
			w.from(fmt.Sprintf("lost.%s.%s.%d", step.Stage, step.Entity, step.Trigger), func() { w.must(RetryLost{Step: step}) })
			did = true
		}
	}
	if !w.thread.Exists() || w.rng.IntN(4) > 0 {
		return did
	}
	for _, id := range w.thread.RunIDs { // the model answers again
		for stage, f := range w.thread.Runs[id].Failed {
			if f.Class == event.ClassModelAway && w.thread.Unsettled() == nil {
				w.from(fmt.Sprintf("away.%s.%s.%d", stage, id, f.Seq), func() { _ = w.do(RetryStage{Stage: stage, Entity: id, By: ByModel}) })
				did = true
			}
		}
	}
	return did
}

func (w *world) deliverAny() bool {
	var names []string
	for _, name := range durableNames {
		if len(w.pending[name]) > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	name := names[w.rng.IntN(len(names))]
	i := 0
	if w.rng.IntN(4) == 0 {
		i = w.rng.IntN(len(w.pending[name])) // several slots, and messages that come again
	}
	w.deliver(name, i)
	return true
}

// live plays a life with faults and then lets everything come to rest.
func (w *world) live(steps int) {
	for range steps {
		w.now = w.now.Add(time.Duration(w.rng.IntN(700)) * time.Millisecond)
		switch {
		case w.rng.IntN(6) == 0:
			w.person()
		case w.rng.IntN(20) == 0:
			w.sweep()
		default:
			w.deliverAny()
		}
	}
	w.calm = true
	for range 5000 {
		w.now = w.now.Add(time.Second)
		if !w.deliverAny() && !w.sweep() {
			w.rest()
			return
		}
	}
	w.t.Fatalf("no rest: %s\n%s", w.describe(), w.history())
}

// rest checks a thread on which nobody works any more.
func (w *world) rest() {
	require.Empty(w.t, Next(w.thread), "stuck\n%s", w.history())
	if !w.thread.Exists() {
		return
	}
	status, reason := w.thread.Status()
	require.NotEqual(w.t, Running, status, "still running (%s)\n%s", reason.Text, w.history())
	require.Zero(w.t, w.thread.Ledger.Held(), "still reserved\n%s", w.history())
	require.Nil(w.t, w.thread.Unsettled(), "unsettled\n%s", w.history())
	spent := 0
	for _, r := range w.thread.Runs {
		if r.Completed != nil {
			spent += r.Completed.Cost
		}
	}
	require.Equal(w.t, spent, w.thread.Ledger.Spent)
	if status == Complete {
		_, park := w.thread.plan(planning{access: Access{Live: true, Replay: true}, byPerson: true})
		require.NotNil(w.t, park, "complete, and yet there is something it may do\n%s", w.history())
	}
	for _, id := range w.thread.FactIDs {
		f := w.thread.Facts[id]
		if f.Root != "" {
			root := w.thread.Facts[w.thread.Root(id)]
			require.Empty(w.t, root.Root, "a chain of duplicates without end")
			if root.Removed && !f.Removed {
				w.t.Fatalf("%q was found and counts nowhere: what it was dropped into was removed\n%s", f.Statement, w.history())
			}
		}
		if known := w.thread.ByFingerprint[f.Fingerprint]; known != id && !f.Removed || known == id && f.Removed {
			w.t.Fatalf("%q (removed %t) is known as %q\n%s", f.Statement, f.Removed, known, w.history())
		}
	}
}

func (w *world) describe() string {
	status, reason := w.thread.Status()
	return fmt.Sprintf("%s %+v, next %+v, pending %v", status, reason, Next(w.thread), w.pending)
}

func (w *world) history() string {
	var b strings.Builder
	for _, e := range w.log {
		fmt.Fprintf(&b, "%d %s %s n=%d\n", e.Seq, e.Kind(), e.Entity, e.N)
	}
	b.WriteString(w.describe())
	return b.String()
}

// Threads with random fates: none stuck, none closed twice under one number, no Pause lost, never two cycles of autopilot at once, money right.
func TestRandomFatesOfThreads(t *testing.T) {
	t.Parallel()
	const threads = fates
	cycles, closings, failed := 0, 0, 0
	for seed := range uint64(threads) {
		w := newWorld(t, seed)
		w.live(20 + int(seed%120))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		cycles += len(w.thread.Cycles)
		for _, c := range w.thread.Cycles {
			closings += len(c.Closings)
		}
		for _, e := range w.log {
			if e.Kind() == "stage.failed" || e.Kind() == "run.failed" {
				failed++
			}
		}
	}
	require.Greater(t, cycles, threads, "the fates never got to a second cycle")
	require.Greater(t, closings, cycles, "no cycle was ever opened again")
	require.Greater(t, failed, threads/4)
	t.Logf("%d threads, %d cycles, %d closings, %d failures", threads, cycles, closings, failed)
}

// A fold of the same events from the beginning is the same state as the one that grew with them, and a clone is too.
func TestFoldIsAFunctionOfTheEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		w.live(100)
		again := NewThread("t")
		for _, e := range w.log {
			again.Evolve(e)
		}
		require.Equal(t, w.thread, again)
		require.Equal(t, w.thread, w.thread.Clone())
	}
}
