package research

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/lost"
	"github.com/factstream/factstream/shared/notebook"
)

// askModel is how long the model may take to say that it is there.
const askModel = 10 * time.Second

// sweep looks for lost steps, and for stages that wait for the model, until ctx ends. What fails is tried again with the
// next sweep.
func (r *Researcher) sweep(ctx context.Context) error {
	ticker := time.NewTicker(r.options.Sweep)
	defer ticker.Stop()
	failed := 0 // sweeps in a row
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := errors.Join(r.retryLost(ctx), r.retryAway(ctx))
		switch {
		case ctx.Err() != nil:
		case err == nil:
			if failed > 1 {
				r.Log.Info().Int("failed", failed).Msg("sweeps are complete again")
			}
			failed = 0
		default:
			failed++
			level := zerolog.InfoLevel // one that meets an election is nothing to look at, and one warning is enough for a bus that is away
			if failed == 2 {
				level = zerolog.WarnLevel
			}
			r.Log.WithLevel(level).Err(err).Msg("sweep incomplete, trying again")
		}
	}
}

// retryLost asks once more for every step whose message is gone.
func (r *Researcher) retryLost(ctx context.Context) error {
	steps, err := lost.Find(ctx, r.JS, r.Tail, r.Now())
	if err != nil {
		return err
	}
	if len(steps) > 0 {
		if err := pointLost.Hit(ctx); err != nil {
			return err
		}
	}
	threads := map[string]bool{}
	var faults []error
	for _, s := range steps {
		threads[s.Thread] = true
		r.Log.Warn().Str("thread", s.Thread).Str("stage", s.Stage).Str("entity", s.Entity).Uint64("trigger", s.Trigger).Msg("a step was lost, asking again")
		// The trigger is in the seed: each loss of a step has an event of its own, and two sweepers make the same one.
		origin := notebook.Origin{Seed: fmt.Sprintf("lost.%s.%s.%d", s.Stage, s.Entity, s.Trigger)}
		_, err := r.Appender.Append(ctx, s.Thread, notebook.RetryLost{Step: s.Step}, origin)
		faults = append(faults, refused(err))
	}
	r.stuck.Set(float64(len(threads)))
	return errors.Join(faults...)
}

// away is a stage that failed because the model did not answer.
type away struct {
	thread, stage, entity string
	failed                uint64 // sequence of its failure
}

// retryAway asks for the stages again that failed while the model was away, once it answers.
func (r *Researcher) retryAway(ctx context.Context) error {
	var waiting []away
	r.Tail.ViewAll(func(n *notebook.Notebook) {
		for _, t := range n.Threads() {
			waiting = append(waiting, waitingForModel(t)...)
		}
	})
	if len(waiting) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askModel)
	defer cancel()
	if err := r.options.ModelAnswers(asking); err != nil {
		r.Log.Debug().Err(err).Int("stages", len(waiting)).Msg("stages wait for the model")
		return nil
	}
	var faults []error
	for _, w := range waiting {
		command := notebook.RetryStage{Stage: w.stage, Entity: w.entity, By: notebook.ByModel, Reason: "the model answers again"}
		origin := notebook.Origin{Seed: fmt.Sprintf("away.%s.%s.%d", w.stage, w.entity, w.failed)}
		_, err := r.Appender.Append(ctx, w.thread, command, origin)
		faults = append(faults, refused(err)) // refused while the thread is at work: the next sweep comes
	}
	return errors.Join(faults...)
}

// waitingForModel lists what of a thread may be done again when the model answers: of each run the stage that failed, and
// of each cycle the steps whose newest closing failed so. A brief or map that a later closing made is not made again. It
// is empty while a cycle is at work, and for threads whose engine needs no model. It is pure.
func waitingForModel(t *notebook.Thread) []away {
	if !t.Exists() || t.Settings.Engine == "extractive" || t.Unsettled() != nil {
		return nil
	}
	var out []away
	for _, id := range t.RunIDs {
		for _, stage := range []string{event.StageDistill, event.StageJudge} {
			if f, failed := t.Runs[id].Failed[stage]; failed && retriedByItself[f.Class] {
				out = append(out, away{t.ID, stage, id, f.Seq})
			}
		}
	}
	newest := map[string]uint64{} // stage -> closing of the thread that made it last
	for _, c := range t.Cycles {
		for _, closing := range c.Closings {
			for stage := range closing.Done {
				newest[stage] = max(newest[stage], closing.Seq)
			}
		}
	}
	for _, c := range t.Cycles {
		for _, stage := range []string{event.StageQuestions, event.StageBrief, event.StageCoverage} {
			last := lastOf(c, stage)
			if last == nil {
				continue
			}
			f, failed := last.Failed[stage]
			made := stage != event.StageQuestions && newest[stage] > last.Seq
			if failed && retriedByItself[f.Class] && !made {
				out = append(out, away{t.ID, stage, strconv.Itoa(c.ID), f.Seq})
			}
		}
	}
	return out
}

// lastOf is the newest closing of a cycle that had to do a step; nil when none had.
func lastOf(c *notebook.Cycle, stage string) *notebook.Closing {
	for i := len(c.Closings) - 1; i >= 0; i-- {
		closing := c.Closings[i]
		_, done := closing.Done[stage]
		_, failed := closing.Failed[stage]
		if done || failed {
			return closing
		}
	}
	return nil
}
