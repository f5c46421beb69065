package research

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/telemetry"
)

// Every way in which calls can end, and what becomes of the run, its attempts and its money. The delays before the
// second and third attempt are those of servicetest.
func TestWhatCallsEndInIsWhatTheRunEndsIn(t *testing.T) {
	t.Parallel()
	cut := standin.Answer{Fault: standin.Reset, After: 900}
	whole := standin.Answer{}
	cases := map[string]struct {
		answers  []standin.Answer
		then     standin.Answer
		status   string
		code     string
		attempts []string // codes; empty: it completed the run
		says     string
	}{
		"cut, then whole":         {answers: []standin.Answer{cut}, then: whole, status: "completed", attempts: []string{"truncated", ""}},
		"cut three times":         {then: cut, status: "failed", code: "truncated", attempts: []string{"truncated", "truncated", "truncated"}, says: "may still bill"},
		"ends without its report": {then: standin.Answer{Stream: "tabstack/truncated"}, status: "failed", code: "truncated", attempts: []string{"truncated", "truncated", "truncated"}},
		"5xx, then whole": {answers: []standin.Answer{{Status: 500, Body: "<html><title>Bad day</title></html>", Header: map[string]string{"Content-Type": "text/html"}}},
			status: "completed", attempts: []string{"server_error", ""}},
		"dropped, then whole": {answers: []standin.Answer{{Fault: standin.Drop}}, status: "completed", attempts: []string{"transport", ""}},
		"stall, then whole":   {answers: []standin.Answer{{Fault: standin.Stall, After: 500}}, status: "completed", attempts: []string{"stall", ""}},
		"429, then whole": {answers: []standin.Answer{{Status: 429, Body: `{"error":"slow down"}`}},
			status: "completed", attempts: []string{"rate_limited", ""}},
		"401":            {then: standin.Answer{Status: 401, Body: `{"error":"Unauthorized"}`}, status: "failed", code: "auth_error", attempts: []string{"auth_error"}, says: "refuses the key"},
		"402":            {then: standin.Answer{Status: 402, Body: `{"error":"No credits"}`}, status: "failed", code: "payment_required", attempts: []string{"payment_required"}, says: "No credits"},
		"403":            {then: standin.Answer{Status: 403, Body: `{"error":"Forbidden"}`}, status: "failed", code: "auth_error", attempts: []string{"auth_error"}},
		"422":            {then: standin.Answer{Status: 422, Body: `{"error":"mode must be fast"}`}, status: "failed", code: "bad_request", attempts: []string{"bad_request"}, says: "mode must be fast"},
		"an error event": {then: standin.Answer{Stream: "tabstack/error"}, status: "failed", code: "task_error", attempts: []string{"task_error"}},
		"complete without a report": {then: standin.Answer{Body: "event: complete\ndata: {\"message\":\"done\"}\n\n"},
			status: "failed", code: "protocol_error", attempts: []string{"protocol_error"}, says: "The provider may still bill"},
	}
	bus := servicetest.NewBus(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			provider := standin.Start(t, standin.Options{Answers: c.answers, Then: c.then})
			r, stop := start(t, bus, Options{}, live(provider), func(cfg *config.Config) {
				if slices.Contains(c.attempts, "stall") {
					cfg.IdleTimeout = 2 * time.Second
				}
			})
			defer stop()
			thread := newThread(t, r.Service)
			run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))

			require.Equal(t, c.status, run.Status, "%+v", run.Failure)
			var codes []string
			for i, a := range run.Attempts {
				require.Equal(t, i+1, a.N)
				codes = append(codes, a.Code)
			}
			require.Equal(t, c.attempts, codes)
			require.Equal(t, len(c.attempts), provider.Stats().Calls)
			require.Equal(t, 1, provider.Stats().MaxInFlight)
			if c.status == "completed" {
				requireLedger(t, r.Service, thread, 250, 0)
			} else {
				require.Equal(t, c.code, run.Failure.Code)
				require.Contains(t, run.Failure.Detail, c.says)
				requireLedger(t, r.Service, thread, 0, 0)
			}
			require.Eventually(t, func() bool { return len(spooledFiles(t, r)) == 0 }, servicetest.Wait, soon)
		})
	}
}

func TestTheWaitBeforeTheNextAttemptIsTheLongerOfOursAndTheProviders(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Status: 429, Header: map[string]string{"Retry-After": "1"}}, {Fault: standin.Reset}}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	require.Len(t, run.Attempts, 3)
	require.GreaterOrEqual(t, run.Attempts[1].Started.Sub(run.Attempts[0].Ended), time.Second)
	require.GreaterOrEqual(t, run.Attempts[2].Started.Sub(run.Attempts[1].Ended), r.Config.RetryDelays[1])
}

func TestWhatCameOfAFailedAttemptIsKeptUnderItsName(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Fault: standin.Close, After: 700}}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	ref, err := r.Artifacts.Named(withinWait(t), thread, artifact.AttemptName(run.ID, 1))
	require.NoError(t, err)
	require.Equal(t, int64(700), ref.Size)
	require.NotEqual(t, brought(t, r.Service, run).Raw.Ref, ref.Ref)
}

func TestAFailedRunWithdrawsWhatWaitsAndTheThreadParksNamingIt(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Stream: "tabstack/error", Gate: gate, After: 200}}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	first := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 200 })
	second := request(t, r.Service, thread, liveAccess)
	close(gate)
	require.Equal(t, "failed", awaitRun(t, r.Service, thread, first).Status)
	require.Equal(t, "withdrawn", awaitRun(t, r.Service, thread, second).Status)
	requireLedger(t, r.Service, thread, 0, 0)
	// The briefer settles both cycles, then autopilot parks.
	servicetest.Append(t, r.Service, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 2}})
	servicetest.Append(t, r.Service, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Idle })
	require.Equal(t, 1, provider.Stats().Calls)
}

func TestAKeyThatIsRefusedParksTheThreadWithWhatTheProviderSaid(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Status: 401, Body: `{"error":"Unauthorized - Invalid token"}`}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service, func(s *event.Settings) { s.Auto = true })
	servicetest.Append(t, r.Service, thread, notebook.Start{Access: liveAccess})
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return len(th.Cycles) == 1 && th.Cycles[0].Newest() != nil })
	servicetest.Append(t, r.Service, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Idle })
	reason := stateOf(r.Service, thread).Reason
	require.Equal(t, notebook.ReasonProvider, reason.Code)
	require.Contains(t, reason.Text, "Invalid token")
	require.Contains(t, reason.Text, "auth_error")
}

func TestARunWithoutKeyFailsBeforeAnythingIsSpent(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{})
	for code, change := range map[string]func(*config.Config){
		event.CodeNoKey: func(c *config.Config) { c.Tabstack.BaseURL = provider.URL() },
		codeOffline:     func(c *config.Config) { c.Tabstack.APIKey = key },
	} {
		r, stop := start(t, bus, Options{}, change)
		thread := newThread(t, r.Service)
		run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
		require.Equal(t, code, run.Failure.Code)
		require.Contains(t, run.Failure.Detail, "Nothing was spent")
		require.Empty(t, run.Attempts)
		requireLedger(t, r.Service, thread, 0, 0)
		stop()
	}
	require.Zero(t, provider.Stats().Calls)
}

func TestARunIsGivenUpWithItsReservationReleased(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	message := worker.Message{Subject: "run.requested." + thread + "." + run + ".0", Data: []byte("{not an event"), Seq: 1}
	require.Error(t, r.handleRun(withinWait(t), message))
	// What only bears the run's name fails nothing: the run is asked for by another message, and may be bought at this moment.
	require.NoError(t, r.giveUpRun(withinWait(t), message, worker.Failure{Class: worker.ClassMalformed, Err: event.ErrMalformed}))
	message.Subject = "stage.retried." + thread + "." + run + ".1"
	require.NoError(t, r.giveUpRun(withinWait(t), message, worker.Failure{Class: worker.ClassMalformed, Err: event.ErrMalformed}))
	require.False(t, stateOf(r.Service, thread).Runs[run].Terminal())
	requireLedger(t, r.Service, thread, 0, 250)

	message.Subject, message.Seq = "run.requested."+thread+"."+run+".0", stateOf(r.Service, thread).Runs[run].Seq
	require.NoError(t, r.giveUpRun(withinWait(t), message, worker.Failure{Class: worker.ClassMalformed, Err: event.ErrMalformed}))
	failed := awaitRun(t, r.Service, thread, run)
	require.Equal(t, event.CodeMalformed, failed.Failure.Code)
	requireLedger(t, r.Service, thread, 0, 0)
	// Again, and for what is no run at all: nothing happens.
	require.NoError(t, r.giveUpRun(withinWait(t), message, worker.Failure{Class: worker.ClassCrashLoop, Err: event.ErrMalformed}))
	message.Subject = "run.requested.nobody.nothing.0"
	require.NoError(t, r.giveUpRun(withinWait(t), message, worker.Failure{Class: worker.ClassCrashLoop, Err: event.ErrMalformed}))
	require.Equal(t, event.CodeMalformed, runOf(r.Service, thread, run).Failure.Code)
}

// A process that was stopped between its look for an answer and its claim, for longer than its lease, may claim at the same
// moment as the one that took over, or after it, and for the same message. One of the two has the attempt and asks; the
// other neither asks nor counts the first one's attempt as lost.
func TestOnlyOneOfTwoHoldersClaimsAnAttempt(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	other := idle(t, bus)
	thread := newThread(t, other, func(s *event.Settings) { s.Budget = 1_000_000 })
	holders := []*Researcher{open(t, bus, Options{}), open(t, bus, Options{})}
	for _, r := range holders {
		servicetest.Run(t, r.Service)
	}
	for range 20 {
		run := request(t, other, thread, liveAccess)
		j := job{cause: "requested-" + run, thread: thread, run: run}
		claims, errs := make([]attempt, 2), make([]error, 2)
		var wg sync.WaitGroup
		for i, r := range holders {
			_, err := r.Tail.CatchUp(t.Context())
			require.NoError(t, err)
			wg.Go(func() { claims[i], _, errs[i] = r.claim(t.Context(), j, 0) })
		}
		wg.Wait()
		_, _, late := holders[0].claim(t.Context(), j, 0)
		require.ErrorIs(t, late, errOvertaken)
		won := slices.IndexFunc(claims, func(a attempt) bool { return a.n == 1 })
		require.GreaterOrEqual(t, won, 0, "%v", errs)
		require.NoError(t, errs[won])
		require.Zero(t, claims[1-won].n, "both asked")
		require.ErrorIs(t, errs[1-won], errOvertaken)
		_, err := other.Tail.CatchUp(t.Context())
		require.NoError(t, err)
		require.Len(t, stateOf(other, thread).Runs[run].Attempts, 1)
	}
}

// A message can come again while its process works on it: a machine that slept has told nobody that it goes on.
func TestAReplayThatIsDeliveredAgainWhileItIsPlayedIsPlayedOnce(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{}, func(c *config.Config) { c.Replay.Delay = 50 * time.Millisecond })
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return len(th.Runs[run].Attempts) == 1 })
	stream, err := r.JS.Stream(withinWait(t), topology.Notebook)
	require.NoError(t, err)
	asked, err := stream.GetMsg(withinWait(t), runOf(r.Service, thread, run).Seq)
	require.NoError(t, err)
	message := worker.Message{Subject: asked.Subject, Data: asked.Data, Header: asked.Header, Seq: asked.Sequence, NumDelivered: 2}
	require.NoError(t, r.handleRun(withinWait(t), message))
	got := awaitRun(t, r.Service, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Len(t, got.Attempts, 1)
}

// An append whose answer did not come may have been stored, and is decided again: then it leads to nothing. What became of the attempt is known
// all the same, and the message is not done while the run waits for its next attempt.
func TestWhatAFailedAttemptEndsInIsKnownWhenItsAppendIsDecidedAgain(t *testing.T) {
	t.Parallel()
	stall := &provider.Error{Code: "stall", Detail: "It said nothing for long.", Retryable: true}
	refusal := &provider.Error{Code: "auth_error", Detail: "The provider refuses the key."}
	minute := []time.Duration{time.Minute, time.Minute}
	cases := map[string]struct {
		failure *provider.Error
		delays  []time.Duration
		then    func(t *testing.T, r *Researcher, j job) // between the two tries
		outcome string
		err     error // as of errors.Is; of one that is to be tried again the detail is looked for
	}{
		"to be tried again":     {failure: stall, delays: minute, outcome: telemetry.OutcomeLater},
		"tried often enough":    {failure: stall, outcome: telemetry.OutcomeFailed},
		"not to be tried again": {failure: refusal, delays: minute, outcome: telemetry.OutcomeFailed},
		"cancelled since": {failure: stall, delays: minute, outcome: telemetry.OutcomeSkipped, then: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.CancelRun{Run: j.run})
		}},
		"deleted since": {failure: stall, delays: minute, outcome: telemetry.OutcomeSkipped, then: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.DeleteThread{})
		}},
		"begun again by another since": {failure: stall, delays: []time.Duration{0}, err: errOvertaken, then: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.StartAttempt{Run: j.run, Holder: "another", Max: 3, After: 1})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, servicetest.NewBus(t), Options{}, func(cfg *config.Config) { cfg.RetryDelays = c.delays })
			servicetest.Run(t, r.Service)
			thread := newThread(t, r.Service)
			run := request(t, r.Service, thread, liveAccess)
			servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
			j := job{cause: "requested", thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
			settle := func() (string, error) {
				return r.settle(t.Context(), j, answer{attempt: attempt{thread, run, 1}, err: c.failure})
			}
			first, firstErr := settle()
			if c.then != nil {
				c.then(t, r, j)
			}
			again, err := settle()
			require.Equal(t, c.outcome, again)
			if c.outcome == telemetry.OutcomeLater {
				require.ErrorContains(t, err, c.failure.Detail)
			} else {
				require.ErrorIs(t, err, c.err)
			}
			if c.then == nil {
				require.Equal(t, first, again)
				require.Equal(t, firstErr == nil, err == nil)
			}
		})
	}
}
