package research

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// asResearcher in the environment makes this test binary the researcher itself: a process that can be killed.
const asResearcher = "RESEARCHER_UNDER_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asResearcher) != "" {
		os.Exit(service.Main("researcher", service.Worker, Parts))
	}
	testenv.Clear()
	// The tests wait far more than they work: for a lease or a message of a process that was killed.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// process is a researcher in a process of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	log   *bytes.Buffer
}

// spawn starts a researcher as a process; it is killed with the test.
func spawn(t *testing.T, cfg config.Config, environment ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{}), log: &bytes.Buffer{}}
	p.cmd.Env = append(append(os.Environ(), cfg.Environ()...), append(environment, asResearcher+"=1")...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the process said:\n%s", p.log)
		}
	})
	return p
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	<-p.ended
}

// awaitKilled waits until a fault point has ended the process.
func (p *process) awaitKilled(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	case <-time.After(servicetest.Wait):
		t.Fatal("the point was not reached")
	}
}

// A process that is killed at any point is started again on the same directory. The run settles once, and an answer that
// was whole is not bought again.
func TestAProcessIsKilledAtEveryPointOfARun(t *testing.T) {
	t.Parallel()
	cut := []standin.Answer{{Fault: standin.Reset, After: 900}}
	cases := map[string]struct {
		at       string
		answers  []standin.Answer
		calls    int
		attempts []string
	}{
		"with the message in hand":           {at: pointDelivered.Name, calls: 1, attempts: []string{""}},
		"with the lease":                     {at: pointLeased.Name, calls: 1, attempts: []string{""}},
		"claimed and not called":             {at: pointClaimed.Name, calls: 1, attempts: []string{"lost", ""}},
		"in the stream":                      {at: pointStreaming.Name + "@3", calls: 2, attempts: []string{"lost", ""}},
		"whole in the spool":                 {at: pointAnswered.Name, calls: 1, attempts: []string{""}},
		"saved and not settled":              {at: pointSaved.Name, calls: 1, attempts: []string{""}},
		"all saved and not settled":          {at: pointKept.Name, calls: 1, attempts: []string{""}},
		"settled and not acknowledged":       {at: pointSettled.Name, calls: 1, attempts: []string{""}},
		"an attempt failed, and not put off": {at: pointFailed.Name, answers: cut, calls: 2, attempts: []string{"truncated", ""}},
		"cut, and not yet a failed attempt":  {at: pointAnswered.Name, answers: cut, calls: 2, attempts: []string{"lost", ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus := servicetest.NewBus(t, bustest.Mortal)
			other := idle(t, bus)
			provider := standin.Start(t, standin.Options{Answers: c.answers, Then: standin.Answer{Piece: 512, Delay: time.Millisecond}})
			cfg := bus.Config("researcher", live(provider))
			struck := filepath.Join(t.TempDir(), "struck")
			point, nth, _ := strings.Cut(c.at, "@")
			armed := fault.Variable + "=" + point + "=kill"
			if nth != "" {
				armed += "@" + nth
			}
			environment := []string{armed, fault.LogVariable + "=" + struck}

			first := spawn(t, cfg, environment...)
			thread := newThread(t, other)
			run := request(t, other, thread, liveAccess)
			first.awaitKilled(t)
			spawn(t, cfg, environment...)
			got := awaitRun(t, other, thread, run)
			require.Equal(t, "completed", got.Status, "%+v", got.Failure)
			var codes []string
			for _, a := range got.Attempts {
				codes = append(codes, a.Code)
			}
			require.Equal(t, c.attempts, codes)
			require.Equal(t, c.calls, provider.Stats().Calls)
			requireLedger(t, other, thread, 250, 0)
			said, err := os.ReadFile(struck)
			require.NoError(t, err)
			require.Equal(t, point+" kill\n", string(said))
		})
	}
}

func TestOneCallAtATimeOverTwoProcessesOfWhichOneIsKilled(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t, bustest.Mortal)
	other := idle(t, bus)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Hold: 100 * time.Millisecond, Piece: 4096}})
	one := spawn(t, bus.Config("researcher", live(provider)))
	spawn(t, bus.Config("researcher", live(provider)))
	const runs = 20
	thread := newThread(t, other, func(s *event.Settings) { s.Budget = runs * 250 })
	var ids []string
	for range runs {
		ids = append(ids, request(t, other, thread, liveAccess))
	}
	await(t, provider, func(s standin.Stats) bool { return s.Calls >= 5 })
	require.Eventually(t, func() bool { // the first one is the holder of the call that is under way
		h, held, err := other.Leases.Holder(withinWait(t), "provider.tabstack")
		return err == nil && held && strings.HasSuffix(h.Name, fmt.Sprintf(":%d", one.cmd.Process.Pid))
	}, servicetest.Wait, time.Millisecond)
	one.kill(t)
	for _, id := range ids {
		run := awaitRun(t, other, thread, id)
		require.Equal(t, "completed", run.Status, "%+v", run.Failure)
	}
	require.Equal(t, 1, provider.Stats().MaxInFlight)
	require.LessOrEqual(t, provider.Stats().Calls, runs+1)
	requireLedger(t, other, thread, runs*250, 0)
}

// The stream was whole when the process died, though its connection had not ended yet.
func TestAProcessThatIsKilledBehindTheReportMakesNoSecondCall(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t, bustest.Mortal)
	other := idle(t, bus)
	stream, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Fault: standin.Stall, After: len(stream)}})
	cfg := bus.Config("researcher", live(provider))
	struck := filepath.Join(t.TempDir(), "struck")
	environment := []string{fault.Variable + "=" + pointAnswered.Name + "=kill", fault.LogVariable + "=" + struck}
	first := spawn(t, cfg, environment...)
	thread := newThread(t, other)
	run := request(t, other, thread, liveAccess)
	first.awaitKilled(t)
	spawn(t, cfg, environment...)
	got := awaitRun(t, other, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Equal(t, 1, provider.Stats().Calls)
	requireLedger(t, other, thread, 250, 0)
}

// A process that was stopped for longer than its lease and its message live is overtaken. When it goes on, its call is
// closed and what it would append is void.
func TestAProcessThatSleptThroughItsLeaseIsOvertaken(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t, bustest.Mortal)
	other := idle(t, bus)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Gate: gate, After: 500}}})
	sleeper := spawn(t, bus.Config("researcher", live(provider)))
	thread := newThread(t, other)
	run := request(t, other, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGSTOP))
	spawn(t, bus.Config("researcher", live(provider)))
	got := awaitRun(t, other, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Equal(t, 2, got.Completed.Attempt)
	require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGCONT))
	await(t, provider, func(s standin.Stats) bool { return s.Left == 1 && s.InFlight == 0 })
	require.Equal(t, 2, provider.Stats().Calls)
	_, err := other.Tail.CatchUp(withinWait(t))
	require.NoError(t, err)
	require.Len(t, runOf(other, thread, run).Attempts, 2)
	requireLedger(t, other, thread, 250, 0)
}

// A process that was stopped in a replay and goes on while another plays it takes nothing from that one: it claims no attempt, not by what was
// delivered to it meanwhile either, and the message stays with the other, so that it is there should that one end.
func TestAProcessThatComesBackLeavesAReplayToWhoPlaysItNow(t *testing.T) {
	t.Parallel()
	cut := filepath.Join(t.TempDir(), "cut.sse")
	content, err := fixtures.Stream("tabstack", "truncated")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, content, 0o600))
	cases := map[string]struct {
		at      string
		plays   string // the stopped one, in place of the built-in stream
		attempt int    // of the other
	}{
		"it has not claimed":           {at: pointLeased.Name, attempt: 1},
		"it has the whole answer":      {at: pointAnswered.Name, attempt: 2},
		"it has an answer to ask anew": {at: pointAnswered.Name, plays: cut, attempt: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus := servicetest.NewBus(t, bustest.Mortal)
			other := idle(t, bus)
			struck := filepath.Join(t.TempDir(), "struck")
			sleeper := spawn(t, bus.Config("researcher", func(cfg *config.Config) { cfg.Replay.File = c.plays }),
				fault.Variable+"="+c.at+"=delay:1s", fault.LogVariable+"="+struck)
			thread := newThread(t, other)
			run := request(t, other, thread, servicetest.Access)
			require.Eventually(t, func() bool {
				_, err := os.Stat(struck)
				return err == nil
			}, servicetest.Wait, soon)
			require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGSTOP))
			spawn(t, bus.Config("researcher", func(cfg *config.Config) { cfg.Replay.Delay = bustest.Short / 8 })) // 13 pieces
			playing := func(th *notebook.Thread) bool { return len(th.Runs[run].Attempts) == c.attempt }
			servicetest.Until(t, other, thread, playing)
			require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGCONT))
			consumer, err := other.JS.Consumer(withinWait(t), topology.Notebook, topology.RunsTabstack)
			require.NoError(t, err)
			for over := time.Now().Add(bustest.Short / 2); time.Now().Before(over); time.Sleep(soon) {
				info, err := consumer.Info(withinWait(t))
				require.NoError(t, err)
				got := runOf(other, thread, run)
				require.False(t, got.Terminal(), "the other still plays it")
				require.Equal(t, 1, info.NumAckPending, "the message is no longer with the other")
			}
			got := awaitRun(t, other, thread, run)
			require.Equal(t, "completed", got.Status, "%+v", got.Failure)
			require.Len(t, got.Attempts, c.attempt)
			require.Equal(t, c.attempt, got.Completed.Attempt)
			requireLedger(t, other, thread, 250, 0)
		})
	}
}
