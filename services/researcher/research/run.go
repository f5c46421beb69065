package research

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/factstream/factstream/jetstream/lease"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/access"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/telemetry"
	"github.com/factstream/factstream/shared/text"
)

// job is a run that somebody wants done.
type job struct {
	cause       string // id of the event that asks for it
	thread, run string
	asked       event.RunRequested
	again       bool // the message was delivered before: another process may be at it
}

// Codes of a run that fails before its call is made, beside those of package event.
const (
	codeKeyUnreadable = "key_unreadable"
	codeTooLarge      = "too_large" // the receipt does not fit into a message of the bus
	codeOffline       = "offline"
)

var (
	// errOver is the cause of the end of a run's context: it was cancelled or withdrawn, or its thread is gone.
	errOver = errors.New("the run has ended")
	// errOvertaken: another process has taken the run over, before this one claimed its attempt, in the call or before the answer was settled.
	errOvertaken = errors.New("a later attempt of the run was started")
)

// handleRun does a requested run: on run.requested, and when a lost or failed one is asked for again.
func (r *Researcher) handleRun(ctx context.Context, m worker.Message) error {
	ctx = telemetry.Extract(ctx, m.Header)
	j, wanted, err := r.read(ctx, m)
	if err != nil || !wanted {
		return err
	}
	if err := pointDelivered.Hit(ctx); err != nil {
		return err
	}
	started := r.Now()
	outcome, err := r.run(ctx, j)
	r.Metrics.Step(event.StageRun, outcome, r.Now().Sub(started))
	return err
}

// read finds the run that a message asks for; wanted is false when it is not this worker's, or was asked for anew since.
func (r *Researcher) read(ctx context.Context, m worker.Message) (j job, wanted bool, err error) {
	e, err := event.Parse(m.Subject, m.Data)
	if err != nil {
		return j, false, worker.Malformed(err)
	}
	switch d := e.Data.(type) {
	case event.RunRequested:
	case event.StageRetried:
		if d.Stage != event.StageRun {
			return j, false, nil
		}
	default:
		return j, false, nil
	}
	if !text.ValidToken(e.Thread) || !text.ValidToken(e.Entity) {
		return j, false, worker.Malformed(fmt.Errorf("%w: %q cannot name a file", event.ErrMalformed, m.Subject))
	}
	if err := r.Tail.WaitFor(ctx, m.Seq); err != nil {
		return j, false, err
	}
	j = job{cause: e.ID, thread: e.Thread, run: e.Entity, again: m.NumDelivered > 1}
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		if !over(t, j.run) {
			run := t.Runs[j.run]
			j.asked, wanted = run.Requested, run.Seq == m.Seq && run.Requested.Provider == event.Tabstack
		}
	})
	return j, wanted, nil
}

// over says that nobody wants the run any more: it has its terminal event, or its thread is gone.
func over(t *notebook.Thread, run string) bool {
	r := t.Runs[run]
	return !t.Exists() || r == nil || r.Terminal()
}

// run waits for its turn, with the message in hand and for as long as it takes, and makes the next attempt. The outcome
// is one of telemetry's.
func (r *Researcher) run(work context.Context, j job) (outcome string, err error) {
	wanted, release := r.until(work, j.thread, errOver, func(t *notebook.Thread) bool { return over(t, j.run) })
	defer release()
	watching := r.publish(work, j)
	defer watching.end()
	for {
		if err = r.waitForRoom(wanted, watching); err == nil {
			err = r.inTurn(wanted, j, watching, func(held context.Context) error {
				outcome, err = r.turn(work, held, j, watching)
				return err
			})
		}
		switch {
		case err == nil:
			return outcome, nil
		case errors.Is(context.Cause(wanted), errOver):
			return telemetry.OutcomeSkipped, nil
		case errors.Is(err, errOvertaken): // done or given back, the message would be taken from the process that has the run now
			return telemetry.OutcomeLater, worker.Leave(err)
		case !errors.Is(err, errNoRoom):
			return telemetry.OutcomeLater, err
		}
		// There was no room any more once it had the lease: it waits without it.
	}
}

// inTurn runs fn when it is the run's turn: one process at a time makes a paid call of a provider. A replay costs nothing and waits for
// itself only: in this process for another delivery of its message, and over all processes from the second delivery or attempt on. What
// was delivered to a process that was stopped, meanwhile, is with it when it comes back, and must not take the run from the one that plays
// it. The one that played it first, without a lease, finds its attempt overtaken.
func (r *Researcher) inTurn(ctx context.Context, j job, watching *bulletin, fn func(held context.Context) error) error {
	key, waits := "provider."+j.asked.Provider, "its turn: one call at a time"
	if j.asked.Replay {
		leave, err := r.playing.enter(ctx, j.run)
		if err != nil {
			return err
		}
		defer leave()
		if _, attempts, _ := r.lastAttempt(j); attempts == 0 && !j.again {
			return fn(ctx)
		}
		key, waits = "replay."+j.run, "another process, which plays it"
	}
	return r.Leases.Do(ctx, key, lease.Batch, fn, lease.KeepWhileBusAway(), lease.OnWait(func(h lease.Holder) {
		watching.waiting(waits + " (" + h.Name + ")")
	}))
}

// turn is what is done with the lease in hand, in this order: whatever an earlier attempt bought is used before anything
// is bought. The lease's context ends the call; what is saved afterwards goes on as long as the work may.
func (r *Researcher) turn(work, held context.Context, j job, watching *bulletin) (string, error) {
	before, attempts, wanted := r.lastAttempt(j)
	if attempts > 0 { // a first one that another process has started since is found by the claim
		if _, err := r.Tail.CatchUp(held); err != nil {
			return "", err
		}
		before, attempts, wanted = r.lastAttempt(j)
	}
	if !wanted {
		return telemetry.OutcomeSkipped, nil
	}
	if before.n > 0 {
		if found, err := r.findAnswer(held, j, before); err != nil {
			return "", err
		} else if found != nil {
			defer found.close()
			return r.settle(work, j, *found)
		}
	}
	asked, key, failure, err := r.provider(held, j)
	if err != nil {
		return "", err
	}
	if failure != nil {
		return r.append(held, j, *failure)
	}
	if err := r.room(held); err != nil {
		return "", err
	}
	if err := pointLeased.Hit(held); err != nil {
		return "", err
	}
	if atOnce := j.asked.Replay && attempts == 0 && !j.again && r.replay.AtOnce(j.asked.Mode); atOnce {
		return r.playAhead(work, held, j, watching)
	}
	claim, outcome, err := r.claim(held, j, attempts)
	if err != nil || claim.n == 0 {
		return outcome, err
	}
	if err := pointClaimed.Hit(held); err != nil {
		return "", err
	}
	if held.Err() != nil { // the attempt is open and nothing was bought: who comes next finds it lost
		return "", context.Cause(held)
	}
	if !j.asked.Replay {
		if err := lease.Confirm(held); err != nil { // stopped between claim and call for longer than the lease lives: the same
			return "", err
		}
	}
	got := r.ask(held, j, claim, asked, key, watching)
	defer got.close()
	if err := pointAnswered.Hit(held); err != nil && got.err == nil {
		return "", err
	}
	return r.settle(work, j, got)
}

// lastAttempt gives the attempt that is open, with n 0 when none is, how many attempts there were in all, and whether the
// run is still wanted.
func (r *Researcher) lastAttempt(j job) (a attempt, attempts int, wanted bool) {
	r.Tail.View(j.thread, func(t *notebook.Thread) {
		if over(t, j.run) {
			return
		}
		open, _ := t.Runs[j.run].OpenAttempt()
		a, attempts, wanted = attempt{j.thread, j.run, 0}, len(t.Runs[j.run].Attempts), true
		if open.Ended.IsZero() {
			a.n = open.N
		}
	})
	return a, attempts, wanted
}

// provider gives who is to be asked, or the failure with which the run ends before anything is bought.
func (r *Researcher) provider(ctx context.Context, j job) (provider.Provider, config.Secret, *notebook.FailRun, error) {
	if j.asked.Replay {
		return r.replay, "", nil, nil
	}
	fail := func(code, detail string) (provider.Provider, config.Secret, *notebook.FailRun, error) {
		return nil, "", &notebook.FailRun{Run: j.run, Code: code, Detail: detail + " Nothing was spent."}, nil
	}
	granted, err := access.Load(ctx, r.Settings, r.Config, j.asked.Provider)
	var unreadable *settings.KeyError
	switch {
	case errors.As(err, &unreadable):
		return fail(codeKeyUnreadable, "The "+unreadable.Error()+".")
	case err != nil:
		return nil, "", nil, err
	case granted.Live && r.live != nil:
		r.Redactor.Add(granted.Key.Reveal())
		return r.live, granted.Key, nil, nil
	case r.live == nil || !access.Allowed(r.Config, j.asked.Provider):
		return fail(codeOffline, "The thread asks "+j.asked.Provider+" for real, and calls are switched off (OFFLINE or REPLAY_FILE).")
	}
	return fail(event.CodeNoKey, "There is no key for "+j.asked.Provider+". Save one in the settings, then ask again.")
}

// claim appends attempt.started, before money can be spent, as the one after those that there were when an answer was
// looked for. Its n is 0 when the run was withdrawn or given up instead. An attempt that may not start yet is a worker's
// Later; when another process was faster, which had the lease since, it is errOvertaken.
func (r *Researcher) claim(ctx context.Context, j job, attempts int) (attempt, string, error) {
	command := notebook.StartAttempt{Run: j.run, Holder: r.Holder, Max: len(r.Config.RetryDelays) + 1, After: attempts}
	// The ids are this claim's alone: one of another process for the same message must not be taken for it.
	appended, err := r.Appender.Append(ctx, j.thread, command, notebook.Origin{Cause: j.cause, Seed: text.RandomID()})
	var wait *notebook.Wait
	if errors.As(err, &wait) {
		return attempt{}, telemetry.OutcomeLater, r.later(wait.Until, "waiting", "the next attempt may not start yet")
	}
	if err != nil {
		return attempt{}, "", err
	}
	for _, e := range appended.Events {
		if _, ok := e.Data.(event.AttemptStarted); ok && e.Entity == j.run {
			return attempt{j.thread, j.run, e.N}, "", nil
		}
	}
	if len(appended.Events) == 0 && r.open(j) {
		return attempt{}, "", errOvertaken
	}
	return attempt{}, outcomeOf(appended), nil
}

func (r *Researcher) later(until time.Time, code, detail string) error {
	return worker.Later(code, max(until.Sub(r.Now()), 0), errors.New(detail))
}

// until derives a context that ends with cause as soon as the condition holds in the process's own tail.
func (r *Researcher) until(ctx context.Context, thread string, cause error, holds func(*notebook.Thread) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.Tail.Until(ctx, thread, holds) == nil {
			cancel(cause)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// append does a command of the run whose outcome is an event.
func (r *Researcher) append(ctx context.Context, j job, command notebook.Command) (string, error) {
	appended, err := r.Appender.Append(ctx, j.thread, command, notebook.Origin{Cause: j.cause})
	if err != nil {
		return "", err
	}
	return outcomeOf(appended), nil
}

func outcomeOf(appended notebook.Appended) string {
	if len(appended.Events) == 0 {
		return telemetry.OutcomeSkipped
	}
	for _, e := range appended.Events {
		if f, failed := e.Data.(event.RunFailed); failed && f.Code != event.CodeWithdrawn {
			return telemetry.OutcomeFailed
		}
	}
	return telemetry.OutcomeDone
}

// giveUpRun fails a run whose message was delivered again and again, could not be read, or was put off too often. What
// the run had reserved is released by that. A message that only bears the run's name, or that a later one made obsolete,
// fails nothing: the run is asked for by another.
func (r *Researcher) giveUpRun(ctx context.Context, m worker.Message, f worker.Failure) error {
	subject, origin, mine, err := r.givenUp(ctx, m, event.StageRun)
	if err != nil || !mine {
		return err
	}
	asks := false
	r.Tail.View(subject.Thread, func(t *notebook.Thread) {
		run := t.Runs[subject.ID]
		asks = run != nil && run.Seq == m.Seq
	})
	if !asks {
		return nil
	}
	detail := fmt.Sprintf("The run was given up: %v. What it had reserved is released; if its call was made, the provider may still bill.", f.Err)
	command := notebook.FailRun{Run: subject.ID, Code: f.Class, Detail: detail}
	_, err = r.Appender.Append(ctx, subject.Thread, command, origin)
	return refused(err)
}

// givenUp says what a message stood for that a worker of this stage gives up, and where what follows from it comes from: its
// event, or its place in the stream when it cannot be read. It is not mine when another stage's worker handles it too, or
// its subject is nobody's; then it is kept as a dead letter and no more.
func (r *Researcher) givenUp(ctx context.Context, m worker.Message, stage string) (subject topology.Parts, origin notebook.Origin, mine bool, err error) {
	if subject, err = topology.Parse(m.Subject); err != nil {
		return subject, origin, false, nil
	}
	origin.Seed = fmt.Sprintf("%s@%d", m.Subject, m.Seq)
	if e, err := event.Parse(m.Subject, m.Data); err == nil {
		if retried, ok := e.Data.(event.StageRetried); ok && retried.Stage != stage {
			return subject, origin, false, nil
		}
		origin = notebook.Origin{Cause: e.ID}
	}
	return subject, origin, true, r.Tail.WaitFor(ctx, m.Seq)
}

// refused makes nothing of a refusal: what a step may not do any more is done.
func refused(err error) error {
	var refusal *notebook.Refusal
	if errors.As(err, &refusal) {
		return nil
	}
	return err
}

func isKeyError(err error) bool {
	var unreadable *settings.KeyError
	return errors.As(err, &unreadable)
}
