package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// role makes this test binary play a child, or a supervisor that a test can kill.
const role = "SUPERVISOR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "crash":
		fmt.Println("again=" + os.Getenv("AGAIN"))
		os.Exit(3)
	case "quiet":
		os.Exit(0)
	case "serve", "stubborn":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		if os.Getenv(role) == "stubborn" {
			select {}
		}
	case "deaf": // neither signals nor the lifeline end it
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour)
	case "supervisor":
		Run(context.Background(), [][]Spec{{child("a", "deaf", os.Stdout)}, {child("b", "deaf", os.Stdout)}}, Options{})
	}
}

func child(name, play string, out io.Writer) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Name: name, Path: self, Env: append(os.Environ(), role+"="+play), Again: []string{"AGAIN=yes"}, Output: out}
}

// start runs a supervisor; its events come through the channel, which is closed when it has returned.
func start(t *testing.T, groups [][]Spec, opts Options) (events <-chan Event, stop context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan Event, 1000)
	opts.Tell = func(e Event) { out <- e }
	var done sync.WaitGroup
	done.Go(func() {
		Run(ctx, groups, opts)
		close(out)
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return out, cancel
}

// lines waits for whole lines of output.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) wait(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		all = strings.Split(strings.TrimSpace(l.buf.String()), "\n")
		return l.buf.Len() > 0 && len(all) >= n
	}, time.Minute, 5*time.Millisecond)
	return all
}

func TestAChildThatEndsIsStartedAgainWithGrowingWaitsUpToACap(t *testing.T) {
	t.Parallel()
	out := &lines{}
	events, _ := start(t, [][]Spec{{child("a", "crash", out)}},
		Options{Backoff: 10 * time.Millisecond, MaxBackoff: 30 * time.Millisecond, Healthy: time.Hour})
	for _, wait := range []time.Duration{10, 20, 30, 30} {
		require.Equal(t, Started, (<-events).Kind)
		ended := <-events
		require.Equal(t, Ended, ended.Kind)
		require.Equal(t, wait*time.Millisecond, ended.Wait)
		require.ErrorContains(t, ended.Err, "exit status 3")
	}
	require.Equal(t, []string{"again=", "again=yes", "again=yes"}, out.wait(t, 3)[:3])
}

func TestWhatEachStartIsToldIsAskedForThen(t *testing.T) {
	t.Parallel()
	out := &lines{}
	spec, starts := child("a", "crash", out), 0
	spec.Again = nil
	spec.Each = func() []string {
		starts++
		return []string{"AGAIN=" + strings.Repeat("x", starts)}
	}
	_, _ = start(t, [][]Spec{{spec}}, Options{Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	require.Equal(t, []string{"again=x", "again=xx", "again=xxx"}, out.wait(t, 3)[:3])
}

func TestTheWaitBeginsAnewAfterAHealthyTime(t *testing.T) {
	t.Parallel()
	events, _ := start(t, [][]Spec{{child("a", "quiet", io.Discard)}},
		Options{Backoff: 10 * time.Millisecond, Healthy: time.Nanosecond})
	for range 3 {
		require.Equal(t, Started, (<-events).Kind)
		ended := <-events
		require.Equal(t, 10*time.Millisecond, ended.Wait)
		require.ErrorContains(t, ended.Err, "exit status 0")
	}
}

func TestAProgramThatIsNotThereIsTriedAgain(t *testing.T) {
	t.Parallel()
	events, _ := start(t, [][]Spec{{{Name: "a", Path: t.TempDir() + "/missing"}}}, Options{Backoff: time.Millisecond})
	for range 2 {
		e := <-events
		require.Equal(t, StartError, e.Kind)
		require.ErrorIs(t, e.Err, os.ErrNotExist)
	}
}

func TestGroupsAreStoppedTheLastOneFirst(t *testing.T) {
	t.Parallel()
	out := &lines{}
	events, stop := start(t, [][]Spec{
		{child("worker-1", "serve", out), child("worker-2", "serve", out)}, {child("gateway", "serve", out)},
	}, Options{})
	out.wait(t, 3)
	stop()
	var order []string
	for e := range events {
		if e.Kind == Stopped {
			order = append(order, e.Name)
		}
	}
	require.Len(t, order, 3)
	require.Equal(t, "gateway", order[0])
	require.ElementsMatch(t, []string{"worker-1", "worker-2"}, order[1:])
}

func TestAChildThatDoesNotStopIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	now := make(chan struct{})
	close(now)
	for name, opts := range map[string]Options{
		"grace": {Grace: 20 * time.Millisecond, Hurry: never},
		"hurry": {Grace: time.Hour, Hurry: now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &lines{}
			events, stop := start(t, [][]Spec{{child("a", "stubborn", out)}}, opts)
			out.wait(t, 1)
			stop()
			require.Equal(t, Started, (<-events).Kind)
			require.Equal(t, Killed, (<-events).Kind)
			stopped := <-events
			require.Equal(t, Stopped, stopped.Kind)
			require.ErrorContains(t, stopped.Err, "killed")
		})
	}
}

func TestWhoWaitsToBeStartedAgainStopsAtOnce(t *testing.T) {
	t.Parallel()
	events, stop := start(t, [][]Spec{{child("a", "crash", io.Discard)}}, Options{Backoff: time.Hour, MaxBackoff: time.Hour})
	require.Equal(t, Started, (<-events).Kind)
	require.Equal(t, Ended, (<-events).Kind)
	stop()
	_, more := <-events
	require.False(t, more)
}
