package enginetest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// asService in the environment makes a test binary the service itself: a process that can be killed.
const asService = "FACTSTREAM_SERVICE_UNDER_TEST"

// Main is the TestMain of a service whose process is killed by tests. It finds goroutines that are left behind.
func Main(m *testing.M, name string, parts func(context.Context, *service.Service) ([]service.Part, error)) {
	if os.Getenv(asService) != "" {
		os.Exit(service.Main(name, service.Worker, parts))
	}
	testenv.Clear()
	// The tests wait far more than they work: for a lease or a message of a process that was killed.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// Process is a service in a process of its own, with a fault point that kills it once.
type Process struct {
	t     testing.TB
	cfg   config.Config
	env   []string
	point string
	log   string // of the faults that struck
	cmd   *exec.Cmd
	ended chan struct{}
}

// Spawn starts the service of Main; point, as in "judge.kept@2", says where it is killed. It ends with the test.
func Spawn(t testing.TB, cfg config.Config, point string) *Process {
	t.Helper()
	p := &Process{t: t, cfg: cfg, log: filepath.Join(t.TempDir(), "struck")}
	name, nth, numbered := strings.Cut(point, "@")
	p.point = name
	armed := fault.Variable + "=" + name + "=kill"
	if numbered {
		armed += "@" + nth
	}
	p.env = []string{armed, fault.LogVariable + "=" + p.log, asService + "=1"}
	p.start()
	return p
}

// Restart waits until the point has killed the process, and starts it again; the point does not strike twice.
func (p *Process) Restart() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(servicetest.Wait):
		p.t.Fatalf("the point %s was not reached", p.point)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(p.t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v", p.cmd.ProcessState)
	struck, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	require.Equal(p.t, p.point+" kill\n", string(struck))
	p.start()
}

func (p *Process) start() {
	p.t.Helper()
	said := &bytes.Buffer{}
	cmd, ended := exec.Command(os.Args[0]), make(chan struct{})
	cmd.Env = append(append(os.Environ(), p.cfg.Environ()...), p.env...)
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(p.t, cmd.Start())
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	p.cmd, p.ended = cmd, ended
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if p.t.Failed() {
			p.t.Logf("the process said:\n%s", said)
		}
	})
}
