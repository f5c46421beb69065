package lifeline

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// childMode makes this test binary play a service: it says when it is ready and why it stopped.
const childMode = "LIFELINE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMode) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := Context(context.Background())
	defer stop()
	_, _ = os.Stdout.WriteString("ready\n")
	<-ctx.Done()
	_, _ = os.Stdout.WriteString(context.Cause(ctx).Error() + "\n")
}

func TestAServiceStopsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	child, lines, stdin := service(t, Variable+"="+Stdin)
	require.NoError(t, stdin.Close())
	require.Equal(t, ErrParentGone.Error(), line(t, lines))
	require.NoError(t, child.Wait())
}

func TestAServiceStartedByHandLeavesStandardInputAlone(t *testing.T) {
	t.Parallel()
	child, lines, stdin := service(t)
	require.NoError(t, stdin.Close())
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	require.NotEqual(t, ErrParentGone.Error(), line(t, lines))
	require.NoError(t, child.Wait())
}

func TestWhatIsWrittenIntoTheLifelineIsNotItsEnd(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := make(chan struct{})
	go watch(reader, cancel, func() { close(gone) })
	_, err := writer.Write([]byte("still here"))
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	require.NoError(t, writer.Close())
	<-gone
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrParentGone)
}

func service(t *testing.T, env ...string) (*exec.Cmd, *bufio.Reader, io.WriteCloser) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(self)
	child.Env = append(append(os.Environ(), childMode+"=1"), env...)
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	lines := bufio.NewReader(stdout)
	require.Equal(t, "ready", line(t, lines))
	return child, lines, stdin
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	require.NoError(t, err)
	return text[:len(text)-1]
}
