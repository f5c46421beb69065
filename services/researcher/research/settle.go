package research

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/telemetry"
)

const (
	// stopping is how long saving and settling may go on when the process was told to stop: with the bus there it takes
	// milliseconds, and without it the spool has the answer.
	stopping = 3 * time.Second
	// Pauses between two tries to save, from the first to the longest.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// settle makes of an answer what it is: the run's report, a failed attempt, or nothing, when the call was broken off
// from this side. It is done inside the lease, by a context of its own: the guard that ends a call must not keep what it
// brought from being kept.
func (r *Researcher) settle(work context.Context, j job, a answer) (string, error) {
	switch failure := provider.AsError(a.err); {
	case a.err == nil:
		return r.persist(work, func(ctx context.Context) (string, error) { return r.complete(ctx, j, a) })
	case failure != nil:
		return r.persist(work, func(ctx context.Context) (string, error) { return r.fail(ctx, j, a, failure) })
	case errors.Is(a.err, errOver):
		r.forget(j)
		return telemetry.OutcomeSkipped, nil
	}
	return "", a.err // it was overtaken, its lease was lost, or the process stops: an open attempt stays for whoever comes next
}

// persist tries until it is done, the time for settling is over, or the process has to end. Whatever is not settled then
// stays in the spool, and the next delivery finds it.
func (r *Researcher) persist(work context.Context, save func(context.Context) (string, error)) (string, error) {
	// Without a deadline that a request could see, as a worker's context is: one that is never answered must not take all of
	// the time.
	ctx, cancel := context.WithCancel(context.WithoutCancel(work))
	defer cancel()
	defer time.AfterFunc(r.options.Settle, cancel).Stop()
	disarm := context.AfterFunc(work, func() {
		select {
		case <-time.After(stopping):
			cancel()
		case <-ctx.Done():
		}
	})
	defer disarm()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		outcome, err := save(ctx)
		var last *finished
		switch {
		case errors.As(err, &last):
			return outcome, last.err
		case err == nil || ctx.Err() != nil:
			return outcome, err
		}
		r.Log.Warn().Err(err).Msg("an answer could not be settled, trying again")
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(pause):
		}
	}
}

// finished is an error that saving again would not change: the worker is to have it.
type finished struct{ err error }

func (f *finished) Error() string { return f.err.Error() }

// complete keeps the raw answer, one that was paid for under the attempt's name, then what the event refers to, and then appends run.completed.
// An event that comes to nothing means that the run ended meanwhile, or that a later attempt was started: the answer is
// void. In the second case it is errOvertaken.
func (r *Researcher) complete(ctx context.Context, j job, a answer) (string, error) {
	if !r.open(j) {
		r.void(ctx, j, a.kept) // of what was kept ahead nobody else knows
		r.forget(j)
		return telemetry.OutcomeSkipped, nil
	}
	name := "" // the event names a replay's: an answer that is lost before costs nothing
	if !j.asked.Replay {
		name = artifact.AttemptName(a.run, a.n)
	}
	completed, err := r.keep(ctx, j, a, name)
	if err != nil {
		return "", err
	}
	if err := pointKept.Hit(ctx); err != nil {
		return "", err
	}
	outcome, err := r.append(ctx, j, notebook.CompleteRun{Run: j.run, Completed: completed})
	if errors.Is(err, batch.ErrTooLarge) || errors.Is(err, notebook.ErrInvalid) { // no later try is any different; the answer is kept
		return "", &finished{worker.GiveUp(codeTooLarge, err)}
	}
	if err != nil {
		return "", err
	}
	if err := pointSettled.Hit(ctx); err != nil {
		return "", err
	}
	if outcome == telemetry.OutcomeSkipped && !r.settledBy(j, a.attempt) { // an earlier try may have been stored although its answer did not come
		r.void(ctx, j, &completed)
	} else {
		r.keepAgain(ctx, j, a, name, completed)
	}
	if r.overtaken(j, a.attempt) { // another researcher, which shares the spool, has the run now: only this attempt is void
		r.forgetAttempt(a.attempt)
		return "", &finished{errOvertaken}
	}
	r.forget(j)
	return outcome, nil
}

// keep keeps an answer and makes its event, unless that was done ahead.
func (r *Researcher) keep(ctx context.Context, j job, a answer, name string) (event.RunCompleted, error) {
	if a.kept != nil {
		return *a.kept, pointSaved.Hit(ctx)
	}
	ref, err := r.keepRaw(ctx, a, name)
	if err != nil {
		return event.RunCompleted{}, err
	}
	if err := pointSaved.Hit(ctx); err != nil {
		return event.RunCompleted{}, err
	}
	return r.report(ctx, j, a, ref)
}

// fail ends the attempt. When it may be tried again the message comes back at that time. It is errOvertaken when a later one was started.
func (r *Researcher) fail(ctx context.Context, j job, a answer, failure *provider.Error) (string, error) {
	if a.raw != nil { // for the trail of the attempt; its failure counts without it
		keeping, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := r.keepRaw(keeping, a, artifact.AttemptName(a.run, a.n))
		cancel()
		if err != nil {
			r.Log.Warn().Err(err).Str("run", j.run).Msg("what came of a failed attempt is not kept")
		}
	}
	appended, err := r.Appender.Append(ctx, j.thread, notebook.FailAttempt{
		Run: j.run, N: a.n, Code: string(failure.Code), Detail: failure.Detail, Retryable: failure.Retryable,
		After: failure.RetryAfter, Delays: r.Config.RetryDelays,
	}, notebook.Origin{Cause: j.cause})
	if err != nil {
		return "", err
	}
	if err := pointFailed.Hit(ctx); err != nil {
		return "", err
	}
	if len(appended.Events) == 0 {
		r.clearGone(ctx, j)
	}
	r.forgetAttempt(a.attempt)
	if len(appended.Events) == 0 && r.overtaken(j, a.attempt) {
		return "", &finished{errOvertaken}
	}
	if until := r.retryAt(j, a.attempt, appended); !until.IsZero() {
		return telemetry.OutcomeLater, &finished{r.later(until, string(failure.Code), failure.Detail)}
	}
	if r.failedBy(j, a.attempt) {
		return telemetry.OutcomeFailed, nil
	}
	return outcomeOf(appended), nil
}

// retryAt is when the run may be tried again after attempt a failed; zero when it has ended. It is what the notebook says: what was decided last
// leads to nothing when an earlier try was stored although its answer did not come, and may name another time than that one. What was decided
// counts where the process does not see it yet.
func (r *Researcher) retryAt(j job, a attempt, appended notebook.Appended) (at time.Time) {
	seen := false
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		if over(t, j.run) {
			seen = true
			return
		}
		if last, open := t.Runs[j.run].OpenAttempt(); !open && last.N == a.n {
			seen, at = true, last.RetryAt
		}
	})
	if seen {
		return at
	}
	for _, e := range appended.Events {
		if e.Entity != j.run {
			continue
		}
		switch d := e.Data.(type) {
		case event.AttemptFailed:
			if d.RetryAt != nil {
				at = *d.RetryAt
			}
		case event.RunFailed:
			return time.Time{}
		}
	}
	return at
}

// failedBy says whether the run ended because attempt a failed.
func (r *Researcher) failedBy(j job, a attempt) (failed bool) {
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		run := t.Runs[j.run]
		failed = run != nil && run.Status == "failed" && run.Failure.Code != event.CodeCancelled && run.Failure.Attempt == a.n
	})
	return failed
}

// settledBy says whether the answer of attempt a is the run's.
func (r *Researcher) settledBy(j job, a attempt) (settled bool) {
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		run := t.Runs[j.run]
		settled = run != nil && run.Completed != nil && run.Completed.Attempt == a.n
	})
	return settled
}

// keepRaw saves the answer of an attempt. With its name it is found by the attempt alone, before an event refers to it and without one.
func (r *Researcher) keepRaw(ctx context.Context, a answer, name string) (artifact.Ref, error) {
	if a.raw == nil {
		return artifact.Ref{}, fmt.Errorf("attempt %d of run %s: no answer to keep", a.n, a.run)
	}
	known := func(ref artifact.Ref) (known bool) {
		r.Tail.View(a.thread, func(t *notebook.Thread) { known = deletion.Refers(t, ref) })
		return known
	}
	return a.raw.keep(ctx, r.Artifacts, a.thread, name, known)
}

// keepAgain keeps once more what may have been removed while this answer was kept and not settled: by the deletion of another run, or as what an
// answer left that came to nothing. Neither knew of one that refers to it. From here on they do.
func (r *Researcher) keepAgain(ctx context.Context, j job, a answer, name string, completed event.RunCompleted) {
	shared := false
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		shared = deletion.SharedWithDeleted(t, completed) || deletion.HadVoid(t)
	})
	if !shared {
		return
	}
	ref, err := r.keepRaw(ctx, a, name)
	if err == nil {
		_, err = r.report(ctx, j, a, ref)
	}
	if err != nil {
		r.Log.Warn().Err(err).Str("run", j.run).Msg("what another run that is gone had, too, may be missing")
	}
}

// open says whether the run still waits for its terminal event.
func (r *Researcher) open(j job) (open bool) {
	r.Tail.View(j.thread, func(t *notebook.Thread) { open = !over(t, j.run) })
	return open
}

// overtaken says whether the run is open and has a later attempt than a.
func (r *Researcher) overtaken(j job, a attempt) (later bool) {
	r.Tail.View(j.thread, func(t *notebook.Thread) { later = !over(t, j.run) && len(t.Runs[j.run].Attempts) > a.n })
	return later
}

// void removes what was kept for an answer that came to nothing; nil is nothing.
func (r *Researcher) void(ctx context.Context, j job, kept *event.RunCompleted) {
	if kept != nil {
		r.clearGone(ctx, j)
		r.clearVoid(ctx, j, *kept)
	}
}

// clearGone removes what was saved for a thread that was deleted meanwhile.
func (r *Researcher) clearGone(ctx context.Context, j job) {
	gone := false
	r.Tail.View(j.thread, func(t *notebook.Thread) { gone = !t.Exists() })
	if !gone {
		return
	}
	if err := r.Artifacts.DeleteThread(ctx, j.thread); err != nil {
		r.Log.Warn().Err(err).Msg("artifacts of a deleted thread are left to the janitor")
	}
}

// clearVoid removes what was kept for an answer whose run was cancelled meanwhile; the raw answer stays as the attempt's
// trail.
func (r *Researcher) clearVoid(ctx context.Context, j job, void event.RunCompleted) {
	var refs []artifact.Ref
	r.Tail.View(j.thread, func(t *notebook.Thread) { refs = deletion.VoidOf(t, j.run, void) })
	for _, ref := range refs {
		if err := r.Artifacts.Delete(ctx, ref); err != nil {
			r.Log.Warn().Err(err).Str("run", j.run).Msg("an artifact of a cancelled run is left to the janitor")
		}
	}
}

// forget clears the run's files out of the spool.
func (r *Researcher) forget(j job) {
	if err := r.spool.remove(j.thread, j.run); err != nil {
		r.Log.Warn().Err(err).Str("run", j.run).Msg("spool not cleared, the janitor will")
	}
}

// forgetAttempt clears one attempt's file out of the spool.
func (r *Researcher) forgetAttempt(a attempt) {
	if err := r.spool.removeAttempt(a); err != nil {
		r.Log.Warn().Err(err).Str("run", a.run).Msg("spool not cleared, the janitor will")
	}
}
