package projection_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// Whatever is done to threads, in whatever order and however it comes in batches, the file follows from the stream alone.
func TestRandomFatesGiveTheFileOfAFreshRebuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := servicetest.NewBus(t).Open("gateway")
			servicetest.Run(t, s)
			dir := t.TempDir()
			alongPath, freshPath := filepath.Join(dir, "along.db"), filepath.Join(dir, "fresh.db")
			along, closed := open(t, s, alongPath)
			fate := fate{t: t, s: s, r: rand.New(rand.NewPCG(seed, 7)), kinds: map[string]int{}}
			for i := range 500 {
				fate.step(i)
				if i%100 == 99 { // stopped at any place
					closed()
					along, closed = open(t, s, alongPath)
				}
			}
			caughtUp(t, s, along, alongPath)
			fresh, _ := open(t, s, freshPath)
			caughtUp(t, s, fresh, freshPath)
			same(t, dump(t, freshPath), dump(t, alongPath))
			inMemory := listings(t, along, fate.last)
			closed()
			along, _ = open(t, s, alongPath) // which has nothing in memory yet
			require.Equal(t, listings(t, along, fate.last), inMemory)
			for _, kind := range []string{"facts.distilled", "contradictions.found", "brief.written", "thread.settled", "stage.retried", "run.failed", "thread.deleted"} {
				require.Positive(t, fate.kinds[kind], "the story is worth telling: %v", fate.kinds)
			}
		})
	}
}

// listings is what those are told who saw everything up to each sequence, of all and of some threads.
func listings(t testing.TB, p *projection.Projection, last uint64) (all [][]projection.RawEvent) {
	for after := range last + 2 {
		for _, thread := range []string{"", "t0", "t3", "t7"} {
			events, _, err := p.Events(t.Context(), thread, after, 20)
			require.NoError(t, err)
			all = append(all, events)
		}
	}
	return all
}

type fate struct {
	t     *testing.T
	s     *service.Service
	r     *rand.Rand
	kinds map[string]int
	last  uint64
}

// step does something that may or may not be possible now.
func (f *fate) step(i int) {
	thread := fmt.Sprintf("t%d", f.r.IntN(3)+3*(i/200))
	var cmd notebook.Command
	f.s.Tail.View(thread, func(t *notebook.Thread) { cmd = f.command(i, t) })
	appended, err := f.s.Appender.Append(f.t.Context(), thread, cmd, notebook.Origin{})
	var refused *notebook.Refusal
	var wait *notebook.Wait
	if !errors.As(err, &refused) && !errors.As(err, &wait) {
		require.NoError(f.t, err)
	}
	for _, e := range appended.Events {
		f.kinds[e.Kind()]++
	}
	f.last = max(f.last, appended.Seq)
}

func (f *fate) command(i int, t *notebook.Thread) notebook.Command {
	if !t.Exists() {
		return notebook.CreateThread{Question: "Why " + t.ID + "?", Settings: servicetest.Settings()}
	}
	if next := notebook.Next(t); len(next) > 0 && f.r.IntN(3) > 0 { // mostly what must happen next
		return f.next(t, next[f.r.IntN(len(next))])
	}
	run, question := pick(f.r, t.RunIDs), pick(f.r, t.QIDs)
	budget, title := 250*f.r.IntN(20), fmt.Sprintf("Title %d", i)
	stages := []string{event.StageDistill, event.StageJudge, event.StageQuestions, event.StageBrief, event.StageCoverage}
	stage, entity := pick(f.r, stages), run
	if stage != event.StageDistill && stage != event.StageJudge {
		entity = fmt.Sprint(1 + f.r.IntN(len(t.Cycles)+1))
	}
	commands := []notebook.Command{
		notebook.RequestRun{Run: fmt.Sprintf("r%d", i), Question: fmt.Sprintf("Question %d?", f.r.IntN(5)), Access: servicetest.Access},
		notebook.Start{Access: servicetest.Access}, notebook.Pause{}, notebook.AskQuestion{ID: fmt.Sprintf("q%d", i), Text: fmt.Sprintf("Asked %d?", i)},
		notebook.MoveQuestion{ID: question, Position: f.r.IntN(3)}, notebook.DismissQuestion{ID: question},
		notebook.Configure{Changes: event.ThreadConfigured{Budget: &budget, Title: &title}},
		notebook.CancelRun{Run: run}, notebook.DeleteRun{Run: run}, notebook.RetryStage{Stage: stage, Entity: entity}, notebook.RebuildThread{},
	}
	if f.r.IntN(25) == 0 {
		return notebook.DeleteThread{}
	}
	return commands[f.r.IntN(len(commands))]
}

// next does a step as its worker would: mostly it succeeds.
func (f *fate) next(t *notebook.Thread, step notebook.Step) notebook.Command {
	fails := f.r.IntN(6) == 0
	switch step.Stage {
	case event.StageRun:
		r := t.Runs[step.Entity]
		open, ok := r.OpenAttempt()
		switch {
		case !ok:
			return notebook.StartAttempt{Run: r.ID, Max: 3, After: len(r.Attempts)}
		case fails:
			return notebook.FailAttempt{Run: r.ID, N: open.N, Code: "cut", Retryable: true, Delays: []time.Duration{0, 0}}
		}
		c := gatewaytest.Completed(t.ID)
		c.Attempt = open.N
		return notebook.CompleteRun{Run: r.ID, Completed: c}
	case event.StageDistill:
		if fails {
			return notebook.FailStage{Stage: step.Stage, Entity: step.Entity, N: step.N, Class: event.ClassMalformed, Reason: "bad"}
		}
		cmd := notebook.Distil{Run: step.Entity, N: step.N, Engine: "extractive"}
		for range f.r.IntN(4) {
			cmd.Facts = append(cmd.Facts, gatewaytest.Fact(t.ID, fmt.Sprintf("Statement %d.", f.r.IntN(12)), pick(f.r, gatewaytest.URLs), &event.Excerpt{Text: "x"}))
		}
		return cmd
	case event.StageJudge:
		if fails {
			return notebook.FailStage{Stage: step.Stage, Entity: step.Entity, N: step.N, Class: event.ClassMalformed, Reason: "bad"}
		}
		cmd := notebook.Judge{Run: step.Entity, N: step.N, Engine: "extractive"}
		for range f.r.IntN(5) {
			a, b := t.Facts[pick(f.r, t.FactIDs)], t.Facts[pick(f.r, t.FactIDs)]
			if a != nil && b != nil {
				cmd.Verdicts = append(cmd.Verdicts, event.Verdict{Elder: a.ID, ElderFingerprint: a.Fingerprint, Newer: b.ID, NewerFingerprint: b.Fingerprint,
					Relation: pick(f.r, []string{event.Duplicate, event.Contradiction, event.Distinct})})
			}
		}
		return cmd
	case event.StageClose:
		return f.close(t, step, fails)
	}
	return notebook.Autopilot{Access: servicetest.Access, Trigger: step.Trigger}
}

func (f *fate) close(t *notebook.Thread, step notebook.Step, fails bool) notebook.Command {
	var cycle int
	_, err := fmt.Sscan(step.Entity, &cycle)
	require.NoError(f.t, err)
	closing := notebook.ClosingStep{Cycle: cycle, N: step.N}
	left := t.CycleOf(cycle).Newest().Remaining()
	if len(left) == 0 {
		return notebook.Settle{ClosingStep: closing}
	}
	if fails {
		return notebook.FailStage{Stage: left[0], Entity: step.Entity, N: step.N, Class: event.ClassMalformed, Reason: "bad"}
	}
	switch left[0] {
	case event.StageQuestions:
		return notebook.ProposeQuestions{ClosingStep: closing, Proposed: event.QuestionsProposed{Engine: "extractive",
			Questions: []event.ProposedQuestion{{Text: fmt.Sprintf("Proposed %d?", f.r.IntN(9)), Score: f.r.Float64()}}}}
	case event.StageBrief:
		return notebook.WriteBrief{ClosingStep: closing, Brief: event.BriefWritten{RunCount: f.r.IntN(9), Engine: "extractive"}}
	}
	return notebook.MapCoverage{ClosingStep: closing, Coverage: event.CoverageMapped{Engine: "extractive", Topics: []event.Topic{{ID: "t", Name: "T", Facts: t.FactIDs}}}}
}

func pick[T any](r *rand.Rand, items []T) (one T) {
	if len(items) > 0 {
		one = items[r.IntN(len(items))]
	}
	return one
}
