package fault

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(Variable) != "" { // the child of TestKill
		_ = New("test.kill", "").Hit(context.Background())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "a.b=kill": true, "a.b=kill@3, c.d=delay:20ms": true, "a=stop": true,
		"a": false, "=kill": false, "a=explode": false, "a=kill@0": false, "a=delay": false, "a=delay:soon": false,
	} {
		_, err := parse(text, "")
		require.Equal(t, ok, err == nil, "%q: %v", text, err)
	}
}

func TestStrikesAtTheHitThatWasNamedAndIsNoted(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "faults")
	f, err := parse("a=fail@2,b=delay:1ms", log)
	require.NoError(t, err)
	require.NoError(t, f.hit(t.Context(), "a"))
	require.ErrorIs(t, f.hit(t.Context(), "a"), ErrInjected)
	require.NoError(t, f.hit(t.Context(), "a"))
	require.NoError(t, f.hit(t.Context(), "b"))
	require.NoError(t, f.hit(t.Context(), "other"))
	written, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "a fail\nb delay\n", string(written))

	again, err := parse("a=fail,c=fail", log)
	require.NoError(t, err)
	require.NoError(t, again.hit(t.Context(), "a"), "it has struck before the process was started anew")
	require.ErrorIs(t, again.hit(t.Context(), "c"), ErrInjected)
}

func TestADelayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, err := parse("a=delay:1h", "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.hit(ctx, "a"), context.Canceled)
}

func TestKill(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), Variable+"=test.kill=kill")
	var exit *exec.ExitError
	require.True(t, errors.As(child.Run(), &exit))
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

func TestAPointIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	New("test.once", "nothing; it is registered once")
	require.Panics(t, func() { New("test.once", "again") })
	require.NotEmpty(t, Points())
}

func TestWhatIsPrintedIsRead(t *testing.T) {
	t.Parallel()
	New("test.printed", "nothing was done; hit once")
	var out strings.Builder
	require.NoError(t, Print(&out))
	read, err := ReadPoints(out.String())
	require.NoError(t, err)
	require.Contains(t, read, Point{"test.printed", "nothing was done; hit once"})
	for _, bad := range []string{"no tab\n", "\tno name\n", "no.meaning\t\n", "\n"} {
		_, err := ReadPoints(bad)
		require.Error(t, err, "%q", bad)
	}
	require.True(t, Asked([]string{"--log-level=debug", Flag}))
	require.False(t, Asked(nil))
}
