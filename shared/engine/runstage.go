package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/telemetry"
)

// RunStage is a stage of a run that a model does: what asks for it, and how it is done.
type RunStage struct {
	Stage   string // event.StageDistill or event.StageJudge
	Durable string // the consumer that brings what asks for it
	First   string // kind of the event that asks for it first; stage.retried asks again
	Kept    string // a sentence that says what is still there when the stage fails: "The report is kept."
	Points  Points

	// Do makes the outcome. It is called when the stage is wanted and the process has folded everything up to the event that asks
	// for it, and it may be called again for the same event. Its context is that of Engines.Do, and so are its errors.
	Do func(ctx context.Context, run Run, m *Engine) (notebook.Command, error)
}

// Run is a run whose stage is to be done.
type Run struct {
	Thread  string
	ID      string
	N       int         // the generation that the outcome belongs to
	Trigger string      // id of the event that asks for the stage
	Asks    event.Event // that event: First, or stage.retried
}

// slots is how many runs a stage works on at once, so that one that waits for the language model does not hold up those of the
// engine without one.
const slots = 4

// Worker does the stage of every run that the durable brings, as a part of its service.
func (e *Engines) Worker(stage RunStage) service.Part {
	w := worker.New(e.s.JS, worker.Config{
		Stream: topology.Notebook, Durable: stage.Durable, Slots: slots, AckWait: e.s.Config.AckWait,
		Deadline: -1, // a step waits for its turn with the message in hand; Do limits what it works
		OnGiveUp: func(ctx context.Context, m worker.Message, f worker.Failure) error { return e.giveUp(ctx, stage, m, f) },
		Logger:   e.s.Log,
	}, func(ctx context.Context, m worker.Message) error { return e.handle(ctx, stage, m) })
	return service.Part{Name: stage.Stage, Run: w.Run}
}

// handle takes one message from its receipt to the outcome of the stage.
func (e *Engines) handle(ctx context.Context, stage RunStage, m worker.Message) error {
	ctx = telemetry.Extract(ctx, m.Header)
	began := e.s.Now()
	asks, err := event.Parse(m.Subject, m.Data)
	if err != nil {
		return worker.Malformed(err)
	}
	if !stage.asked(asks) {
		return nil
	}
	if err := stage.Points.Delivered.Hit(ctx); err != nil {
		return err
	}
	if err := e.s.Tail.WaitFor(ctx, m.Seq); err != nil {
		return err
	}
	run := Run{Thread: asks.Thread, ID: asks.Entity, N: asks.N, Trigger: asks.ID, Asks: asks}
	step := Step{
		Thread: run.Thread, Entity: run.ID, Stage: stage.Stage, Trigger: run.Trigger, Delivered: m.NumDelivered,
		Wanted: func(t *notebook.Thread) bool { return stage.awaited(t, run) }, Points: stage.Points,
	}
	outcome := telemetry.OutcomeSkipped
	err = e.Do(ctx, step, func(work context.Context, engine *Engine) error {
		engine.Say(work, "")
		command, err := stage.Do(work, run, engine)
		if err != nil {
			return err
		}
		if err := stage.Points.Made.Hit(work); err != nil {
			return err
		}
		if err := engine.Recorded(); err != nil {
			return err
		}
		// Not in the step's own context, which ends as soon as the outcome is seen.
		appended, err := e.s.Appender.Append(ctx, run.Thread, command, notebook.Origin{Cause: run.Trigger})
		if err != nil {
			return err
		}
		if len(appended.Events) > 0 {
			outcome = telemetry.OutcomeDone
		}
		return stage.Points.Appended.Hit(ctx)
	})
	if err != nil {
		outcome = telemetry.OutcomeLater
	}
	e.record(stage, outcome, began)
	return err
}

// asked says whether an event asks for this stage. One of a version that is not known here asks for nothing: no reader of this
// version has seen its run complete.
func (s RunStage) asked(e event.Event) bool {
	switch d := e.Data.(type) {
	case event.Unknown:
		return false
	case event.StageRetried:
		return d.Stage == s.Stage
	}
	return e.Kind() == s.First
}

// awaited says whether the stage of the run is still to be done in this generation.
func (s RunStage) awaited(t *notebook.Thread, run Run) bool {
	r := t.Runs[run.ID]
	return r != nil && r.Awaits() == s.Stage && r.Gen == run.N
}

// trigger is the sequence of the message that asks for the stage of a run in its current generation; 0 when none does.
func (s RunStage) trigger(t *notebook.Thread, run string) uint64 {
	for _, step := range notebook.Next(t) {
		if step.Stage == s.Stage && step.Entity == run {
			return step.Trigger
		}
	}
	return 0
}

// giveUp records that the stage ended without an outcome. What failed names itself by its subject, since its body may be the
// reason. A message that only bears the run's name fails nothing: the stage is asked for by another.
func (e *Engines) giveUp(ctx context.Context, stage RunStage, m worker.Message, f worker.Failure) error {
	ctx = telemetry.Extract(ctx, m.Header)
	began := e.s.Now()
	subject, err := topology.Parse(m.Subject)
	if err != nil {
		return nil //nolint:nilerr // no subject of the notebook: no run waits for it, and the message is kept among the dead
	}
	cause := fmt.Sprintf("given up at %d", m.Seq)
	if asks, err := event.Parse(m.Subject, m.Data); err == nil {
		if !stage.asked(asks) { // it fell over with what is another worker's
			return nil
		}
		cause = asks.ID
	}
	if err := e.s.Tail.WaitFor(ctx, m.Seq); err != nil {
		return err
	}
	asked := false
	e.s.Tail.View(subject.Thread, func(t *notebook.Thread) { asked = stage.trigger(t, subject.ID) == m.Seq })
	if !asked {
		return nil
	}
	failed := notebook.FailStage{Stage: stage.Stage, Entity: subject.ID, N: subject.N, Class: f.Class, Reason: Reason(f, stage.Kept)}
	if _, err := e.s.Appender.Append(ctx, subject.Thread, failed, notebook.Origin{Cause: cause}); err != nil {
		return err
	}
	e.record(stage, telemetry.OutcomeFailed, began)
	return stage.Points.GivenUp.Hit(ctx)
}

func (e *Engines) record(stage RunStage, outcome string, began time.Time) {
	e.s.Metrics.Step(stage.Stage, outcome, e.s.Now().Sub(began))
}
