// Package brief is the briefer: it does what is left to do when a cycle closes, that is, when none of its runs is worked on
// any more. Follow-up questions come first, then the brief, then the map of topics; what fails is named and the next step
// goes on; at the end the closing is settled, and autopilot takes it from there.
//
// A model picks numbers of facts and writes plain sentences. Ids, links and the Markdown are written here.
package brief

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/telemetry"
)

// slots is how many closings are worked on at once, so that a thread that waits for the language model does not hold up
// those of the engine without one.
const slots = 4

// Places at which the process can be made to fail.
var (
	pointClosed   = fault.New("briefer.closed", "the cycle is closed; nothing was done about it yet")
	pointMade     = fault.New("briefer.made", "a step's outcome is made (a language model's replies are kept); it is not appended")
	pointAppended = fault.New("briefer.appended", "a step's outcome is appended, and with a language model that of the next is not")
	pointSettled  = fault.New("briefer.settled", "the closing is settled; its message is not acknowledged")
)

// Briefer is the service.
type Briefer struct {
	*service.Service
	engines *engine.Engines
	steps   map[string]work // of a closing, by stage
}

// Parts is the briefer with the default options, for service.Main.
func Parts(ctx context.Context, s *service.Service) ([]service.Part, error) {
	b, err := New(ctx, s, engine.Options{})
	if err != nil {
		return nil, err
	}
	return b.Parts(), nil
}

// New opens what the briefer needs on the bus of s.
func New(ctx context.Context, s *service.Service, options engine.Options) (*Briefer, error) {
	engines, err := engine.Open(ctx, s, options)
	if err != nil {
		return nil, err
	}
	b := &Briefer{Service: s, engines: engines}
	b.steps = map[string]work{event.StageQuestions: b.plan, event.StageBrief: b.write, event.StageCoverage: b.cover}
	return b, nil
}

// Parts are what the briefer does as long as it runs.
func (b *Briefer) Parts() []service.Part {
	w := worker.New(b.JS, worker.Config{
		Stream: topology.Notebook, Durable: topology.Brief, Slots: slots, AckWait: b.Config.AckWait,
		Deadline: -1, // a step waits for its turn with the message in hand; the engine limits what it works
		OnGiveUp: b.giveUp, Logger: b.Log,
	}, b.handle)
	return []service.Part{{Name: event.StageClose, Run: w.Run}}
}

// handle takes one message that may have closed a cycle from its receipt to the settled closing. A message that comes again
// goes on where the last delivery ended: what the closing has is not done twice.
func (b *Briefer) handle(ctx context.Context, m worker.Message) error {
	ctx = telemetry.Extract(ctx, m.Header)
	began := b.Now()
	e, err := event.Parse(m.Subject, m.Data)
	if err != nil {
		return worker.Malformed(err)
	}
	if err := b.Tail.WaitFor(ctx, m.Seq); err != nil {
		return err
	}
	c, remaining, closed := b.closing(e.Thread, m.Seq)
	if !closed {
		return nil
	}
	if err := pointClosed.Hit(ctx); err != nil {
		return err
	}
	remaining, settled, err := b.ahead(ctx, c, remaining, m.NumDelivered, began)
	if err != nil || settled {
		return err
	}
	for _, stage := range remaining {
		if err := b.step(ctx, c, stage, m.NumDelivered); err != nil {
			return err
		}
	}
	return b.settle(ctx, c, began)
}

// closing is the moment at which a cycle had no open run, as long as it is the newest of its cycle and not settled.
type closing struct {
	thread   string
	cycle, n int
	seq      uint64 // of the event that closed the cycle
	event    string // its id: the cause of everything that is done about it
}

// closing gives the closing that the message of a sequence brought about, and the steps that it still lacks. It is false for
// messages that closed nothing, for closings that are settled, and for those that a later trigger made obsolete.
func (b *Briefer) closing(thread string, seq uint64) (c closing, remaining []string, closed bool) {
	b.Tail.View(thread, func(t *notebook.Thread) {
		for _, cycle := range slices.Backward(t.Cycles) {
			if newest := cycle.Newest(); newest != nil && newest.Seq == seq {
				c = closing{thread: thread, cycle: cycle.ID, n: newest.N, seq: seq, event: newest.EventID}
				if _, current := c.of(t); current != nil {
					remaining, closed = current.Remaining(), true
				}
				return
			}
		}
	})
	return c, remaining, closed
}

// of finds the closing in the state of its thread; nil when nothing is to be done about it any more.
func (c closing) of(t *notebook.Thread) (*notebook.Cycle, *notebook.Closing) {
	cycle := t.CycleOf(c.cycle)
	if cycle == nil || !t.Exists() || t.RunOpen(cycle) {
		return nil, nil
	}
	newest := cycle.Newest()
	if newest == nil || newest.Seq != c.seq || newest.Settled {
		return nil, nil
	}
	return cycle, newest
}

// wants says whether a step of the closing is still to be done.
func (c closing) wants(t *notebook.Thread, stage string) bool {
	_, current := c.of(t)
	return current != nil && slices.Contains(current.Remaining(), stage)
}

func (c closing) entity() string { return strconv.Itoa(c.cycle) }

func (c closing) step() notebook.ClosingStep { return notebook.ClosingStep{Cycle: c.cycle, N: c.n} }

// work does a step of a closing: it gives the command that records what was made.
type work func(context.Context, closing, *engine.Engine) (notebook.Command, error)

// step does one step of a closing and appends its outcome, or its failure. The error that it returns is one for which the
// message comes again.
func (b *Briefer) step(ctx context.Context, c closing, stage string, delivered int) error {
	began := b.Now()
	outcome, err := b.outcome(ctx, c, stage, delivered)
	b.Metrics.Step(stage, outcome, b.Now().Sub(began))
	if err != nil || outcome == telemetry.OutcomeSkipped {
		return err
	}
	return pointAppended.Hit(ctx)
}

func (b *Briefer) outcome(ctx context.Context, c closing, stage string, delivered int) (outcome string, err error) {
	command, err := b.do(ctx, c, stage, delivered)
	outcome = telemetry.OutcomeSkipped
	if err == nil && command != nil {
		outcome = telemetry.OutcomeDone
		err = b.append(ctx, c, stage, command)
	}
	if class, reason, failed := failure(err); failed {
		b.Log.Warn().Err(err).Str("thread", c.thread).Int("cycle", c.cycle).Str("stage", stage).Str("class", class).Msg("step failed; the closing goes on")
		outcome = telemetry.OutcomeFailed
		err = b.append(ctx, c, stage, notebook.FailStage{Stage: stage, Entity: c.entity(), N: c.n, Class: class, Reason: reason})
	}
	if err != nil {
		outcome = telemetry.OutcomeLater
	}
	return outcome, err
}

// do gives the command that records what a step made; nil when the step is not wanted any more.
func (b *Briefer) do(ctx context.Context, c closing, stage string, delivered int) (command notebook.Command, err error) {
	if b.steps[stage] == nil {
		return nil, fmt.Errorf("%w: %s", errUnknownStep, stage)
	}
	step := engine.Step{
		Thread: c.thread, Entity: c.entity(), Stage: stage, Trigger: c.event, Delivered: delivered,
		Wanted: func(t *notebook.Thread) bool { return c.wants(t, stage) },
	}
	err = b.engines.Do(ctx, step, func(ctx context.Context, m *engine.Engine) error {
		made := b.produce(ctx, c, stage, m)
		if made.err != nil {
			return made.err
		}
		command = made.command
		return m.Recorded()
	})
	if err != nil || command == nil {
		return nil, err
	}
	return command, pointMade.Hit(ctx)
}

// read takes from the state of the closing's thread what a step works on. It fails with engine.ErrUnwanted when the closing
// is over.
func (b *Briefer) read(c closing, take func(*notebook.Thread, *notebook.Cycle)) error {
	over := true
	b.Tail.View(c.thread, func(t *notebook.Thread) {
		if cycle, current := c.of(t); current != nil {
			over = false
			take(t, cycle)
		}
	})
	if over {
		return engine.ErrUnwanted
	}
	return nil
}

// origin is that of the event that records a step. The seed names the step: two failures of one closing would else be events of one
// id, and the second would count as the first come again.
func (c closing) origin(stage string) notebook.Origin {
	return notebook.Origin{Cause: c.event, Seed: c.event + "/" + stage}
}

// append records a step.
func (b *Briefer) append(ctx context.Context, c closing, stage string, command notebook.Command) error {
	_, err := b.Appender.Append(ctx, c.thread, command, c.origin(stage))
	return err
}

// settle ends the closing.
func (b *Briefer) settle(ctx context.Context, c closing, began time.Time) error {
	outcome := telemetry.OutcomeDone
	err := b.append(ctx, c, event.StageClose, notebook.Settle{ClosingStep: c.step()})
	if err != nil {
		outcome = telemetry.OutcomeLater
	}
	b.Metrics.Step(event.StageClose, outcome, b.Now().Sub(began))
	if err != nil {
		return err
	}
	return pointSettled.Hit(ctx)
}

// giveUp fails what the closing still lacks, and settles it. A message that nobody can read closed nothing, since nobody could
// fold it either.
func (b *Briefer) giveUp(ctx context.Context, m worker.Message, f worker.Failure) error {
	ctx = telemetry.Extract(ctx, m.Header)
	subject, err := topology.Parse(m.Subject)
	if err != nil {
		return nil //nolint:nilerr // no subject of the notebook; the message is kept among the dead letters
	}
	if err := b.Tail.WaitFor(ctx, m.Seq); err != nil {
		return err
	}
	c, _, closed := b.closing(subject.Thread, m.Seq)
	if !closed {
		return nil
	}
	b.Metrics.Step(event.StageClose, telemetry.OutcomeFailed, 0)
	return b.append(ctx, c, event.StageClose, notebook.FailStage{
		Stage: event.StageClose, Entity: c.entity(), N: c.n, Class: f.Class, Reason: engine.Reason(f, kept),
	})
}

// kept says, where a step failed, what is not lost by it.
const kept = "The facts are kept."

// classUnknownStep is that of a step of a newer version.
const classUnknownStep = "unknown_step"

var errUnknownStep = errors.New("this version of the briefer does not know the step")

// failure says whether an error ends a step for good: its class and what a person is told. All other errors pass.
func failure(err error) (class, reason string, failed bool) {
	switch class, _, failed = engine.Failure(err); {
	case failed:
	case errors.Is(err, errUnknownStep):
		class = classUnknownStep
	default:
		return "", "", false
	}
	return class, engine.Reason(worker.Failure{Class: class, Err: err}, kept), true
}
