package research

import (
	"context"
	"errors"

	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/access"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/telemetry"
)

// handleAutopilot acts on a settled cycle: the next runs are requested, or the thread is parked with its reason.
func (r *Researcher) handleAutopilot(ctx context.Context, m worker.Message) error {
	ctx = telemetry.Extract(ctx, m.Header)
	e, err := event.Parse(m.Subject, m.Data)
	if err != nil {
		return worker.Malformed(err)
	}
	switch d := e.Data.(type) {
	case event.ThreadSettled:
	case event.StageRetried:
		if d.Stage != event.StageAutopilot {
			return nil
		}
	default:
		return nil
	}
	if err := r.Tail.WaitFor(ctx, m.Seq); err != nil {
		return err
	}
	started := r.Now()
	outcome, err := r.decideNext(ctx, e, m.Seq)
	r.Metrics.Step(event.StageAutopilot, outcome, r.Now().Sub(started))
	return err
}

func (r *Researcher) decideNext(ctx context.Context, e event.Event, seq uint64) (string, error) {
	granted, err := r.access(ctx, e.Thread)
	var unreadable *settings.KeyError
	if errors.As(err, &unreadable) {
		return telemetry.OutcomeFailed, worker.GiveUp(codeKeyUnreadable, unreadable)
	}
	if err != nil {
		return telemetry.OutcomeLater, err
	}
	if err := pointNext.Hit(ctx); err != nil {
		return telemetry.OutcomeLater, err
	}
	appended, err := r.Appender.Append(ctx, e.Thread, notebook.Autopilot{Access: granted, Trigger: seq}, notebook.Origin{Cause: e.ID})
	if err != nil {
		return telemetry.OutcomeLater, err
	}
	return outcomeOf(appended), pointDecided.Hit(ctx)
}

// access is how the thread's provider may be called now. A thread of recorded streams needs no key, so that none that is
// unreadable stands in its way.
func (r *Researcher) access(ctx context.Context, thread string) (notebook.Access, error) {
	var provider string
	replays := false
	r.Tail.View(thread, func(t *notebook.Thread) {
		provider, replays = t.Settings.Provider, t.Replay != nil && *t.Replay
	})
	if replays {
		return notebook.Access{Replay: true}, nil
	}
	granted, err := access.Load(ctx, r.Settings, r.Config, provider)
	return granted.Access, err
}

// giveUpAutopilot parks the thread: nothing is asked until a person presses Start.
func (r *Researcher) giveUpAutopilot(ctx context.Context, m worker.Message, f worker.Failure) error {
	subject, origin, mine, err := r.givenUp(ctx, m, event.StageAutopilot)
	if err != nil || !mine {
		return err
	}
	newest := false
	r.Tail.View(subject.Thread, func(t *notebook.Thread) { newest = t.LastSettled == m.Seq })
	if !newest { // a later message asks for the same, and may do better
		return nil
	}
	command := notebook.FailStage{Stage: event.StageAutopilot, Entity: subject.ID, N: subject.N, Class: f.Class, Reason: f.Err.Error()}
	_, err = r.Appender.Append(ctx, subject.Thread, command, origin)
	return refused(err)
}
