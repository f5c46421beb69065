package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/lifeline"
)

// patience is how long anything may take; the machine may be busy with other tests.
const patience = 2 * time.Minute

// clusters bounds how many run at once: each is six processes.
var clusters = make(chan struct{}, 2)

// hurried makes what waits for a process that died wait for less than the defaults, and for more than a busy machine may hold one up.
var hurried = []string{"RETRY_DELAYS=200ms,400ms", "ACK_WAIT=3s", "LEASE_TTL=4s"}

// cluster is one `factstream up`, or another command that starts everything, on a data directory of its own.
type cluster struct {
	*api
	t              *testing.T
	command        string
	processes      int // that it starts
	data           string
	env            []string
	cmd            *exec.Cmd
	bus            string // addresses of the NATS servers, without user and password
	stdout, stderr *buffer
	ended          chan struct{} // closed when the process has ended
}

// start runs a cluster until the test ends, which fails when it leaves a process behind. env wins over the defaults.
func start(t *testing.T, env ...string) *cluster {
	t.Helper()
	return startBy(t, "up", 5, env...)
}

// startBy is start with another command, which starts so many processes.
func startBy(t *testing.T, command string, processes int, env ...string) *cluster {
	t.Helper()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	c := &cluster{t: t, command: command, processes: processes, data: filepath.Join(t.TempDir(), "data"), env: env}
	t.Cleanup(c.stop)
	c.begin()
	return c
}

// again starts the cluster on the same data directory after it has ended.
func (c *cluster) again() {
	c.t.Helper()
	<-c.ended
	c.begin()
}

func (c *cluster) begin() {
	c.t.Helper()
	c.stdout, c.stderr, c.ended = &buffer{}, &buffer{}, make(chan struct{})
	c.cmd = exec.Command(filepath.Join(bin, "factstream"), c.command)
	// Whatever runs on this machine otherwise, an Ollama for instance, changes nothing.
	c.cmd.Env = append(append(os.Environ(), "FACTSTREAM_HTTP=127.0.0.1:0", "FACTSTREAM_DATA="+c.data, "MODEL_ENGINE=extractive"), c.env...)
	c.cmd.Stdout, c.cmd.Stderr = c.stdout, c.stderr
	require.NoError(c.t, c.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is asked of its state
		close(ended)
	}(c.cmd, c.ended)

	eventually(c.t, "the greeting", func() bool {
		select {
		case <-c.ended:
			c.t.Fatalf("factstream up ended\n%s%s", c.stdout, c.stderr)
		default:
		}
		return strings.Contains(c.stdout.String(), "Ctrl-C stops everything")
	})
	c.api = &api{t: c.t, url: c.greeted(`ready: (http://127\.0\.0\.1:\d+)\n`)}
	c.bus = c.greeted(`bus\s+((?:,?nats://127\.0\.0\.1:\d+)+)\n`)
	eventually(c.t, "every process", func() bool { return len(c.pids()) == c.processes })
}

// greeted finds a part of what was printed at the start.
func (c *cluster) greeted(pattern string) string {
	c.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(c.stdout.String())
	require.NotNil(c.t, found, "%s in\n%s", pattern, c.stdout)
	return found[1]
}

// signal sends the supervisor a signal.
func (c *cluster) signal(s os.Signal) {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(s))
}

// exit waits for the end of the supervisor and gives its exit code, -1 when it was killed.
func (c *cluster) exit() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		c.t.Fatalf("factstream up does not end\n%s", c.stderr)
		return -1
	}
}

// nobodyLeft waits until every process that was ever started here is gone.
func (c *cluster) nobodyLeft(within time.Duration) {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for _, s := range c.started() {
		for !gone(s.PID) {
			if !time.Now().Before(deadline) {
				c.t.Errorf("%s (%d) is left behind", s.Program, s.PID)
				_ = syscall.Kill(s.PID, syscall.SIGKILL)
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

// stop ends the cluster when the test does.
func (c *cluster) stop() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	select {
	case <-c.ended:
	default:
		_ = c.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-c.ended:
		case <-time.After(patience):
			c.t.Error("factstream up does not stop")
			_ = c.cmd.Process.Kill()
			<-c.ended
		}
	}
	c.nobodyLeft(patience)
	if c.t.Failed() {
		c.dump()
	}
}

// dump shows the end of every log, for a test that failed.
func (c *cluster) dump() {
	logs, _ := filepath.Glob(filepath.Join(up.LogDir(c.data), "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		if keep := 6000; len(text) > keep {
			text = text[len(text)-keep:]
		}
		c.t.Logf("--- %s\n%s", filepath.Base(path), text)
	}
}

// slow is what is said when a machine that is busy answers too late, and is tried again.
var slow = regexp.MustCompile(`"error":"[^"]*(deadline exceeded|timeout)|"message":"not ready yet"`)

// quiet asserts that no service warned of anything: all was well. What a killed neighbour makes them say does not belong here.
func (c *cluster) quiet() {
	c.t.Helper()
	logs, err := filepath.Glob(filepath.Join(up.LogDir(c.data), "*.log"))
	require.NoError(c.t, err)
	require.Len(c.t, logs, 6)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		require.NoError(c.t, err)
		for line := range strings.Lines(string(text)) {
			if !slow.MatchString(line) {
				require.Regexp(c.t, `"level":"(info|debug)"`, line, filepath.Base(path))
			}
		}
	}
}

// change is what the supervisor's log says of a service.
type change struct {
	Program string `json:"program"`
	PID     int    `json:"pid"`
	Message string `json:"message"`
}

// changes reads what has become of the services so far, oldest first.
func (c *cluster) changes() []change {
	file, err := os.Open(filepath.Join(up.LogDir(c.data), "factstream.log"))
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // only read
	var all []change
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one change
		if json.Unmarshal(lines.Bytes(), &one) == nil && one.Program != "" {
			all = append(all, one)
		}
	}
	return all
}

// started lists every process that the supervisor has started.
func (c *cluster) started() []change {
	var out []change
	for _, one := range c.changes() {
		if one.Message == "started" {
			out = append(out, one)
		}
	}
	return out
}

// pids gives the process of each service that was started last.
func (c *cluster) pids() map[string]int {
	pids := map[string]int{}
	for _, one := range c.started() {
		pids[one.Program] = one.PID
	}
	return pids
}

// kill ends a service as kill -9 does, and waits until it is started again.
func (c *cluster) kill(service string) {
	c.t.Helper()
	before := c.send(service, syscall.SIGKILL)
	eventually(c.t, service+" is started again", func() bool {
		now := c.pids()[service]
		return now != before && !gone(now)
	})
}

// send sends a service a signal; it gives the service's process.
func (c *cluster) send(service string, s syscall.Signal) int {
	c.t.Helper()
	pid := c.pids()[service]
	require.NotZero(c.t, pid, service)
	require.NoError(c.t, syscall.Kill(pid, s), service)
	return pid
}

// natsURL is where the bus is, with the user and password of a service.
func (c *cluster) natsURL() string {
	c.t.Helper()
	user, password, err := connect.ReadCredentials(embedded.CredentialsFile(c.data))
	require.NoError(c.t, err)
	return strings.ReplaceAll(c.bus, "nats://", "nats://"+user+":"+password+"@")
}

// jetStream is a connection to the bus, as a service has it, until the test ends.
func (c *cluster) jetStream() jetstream.JetStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{URL: c.natsURL(), Name: "e2e", Logger: zerolog.Nop()})
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	return js
}

// join runs one more process of a service beside the cluster, on a data directory of its own, and gives its process id.
func (c *cluster) join(service string) int {
	c.t.Helper()
	output := &buffer{}
	cmd := exec.Command(filepath.Join(bin, service))
	cmd.Env = append(append(os.Environ(), "FACTSTREAM_DATA="+filepath.Join(c.t.TempDir(), "data"), "MODEL_ENGINE=extractive",
		"NATS_URL="+c.natsURL(), lifeline.Variable+"="+lifeline.Stdin), c.env...)
	cmd.Stdout, cmd.Stderr = output, output
	alive, err := cmd.StdinPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a test may have killed it
		close(ended)
	}()
	c.t.Cleanup(func() {
		_ = alive.Close()
		select {
		case <-ended:
		case <-time.After(2 * lifeline.Grace):
			c.t.Errorf("%s (%d) does not end with its lifeline", service, cmd.Process.Pid)
			_ = cmd.Process.Kill()
			<-ended
		}
		if c.t.Failed() {
			c.t.Logf("--- the other %s\n%s", service, output)
		}
	})
	eventually(c.t, "the other "+service+" is up", func() bool { return strings.Contains(output.String(), "started") })
	return cmd.Process.Pid
}

// gone says whether a process that was started here has ended; one whose end nobody has collected yet has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && strings.Contains(string(stat), ") Z ") {
		return true
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Dir(program) != bin // the number has been given to another process
}

// eventually waits until a condition holds that nothing tells of.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// buffer is what a process has written so far.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
