package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/shared/config/testenv"
)

// bin holds the real program beside five copies of the fake service.
var bin string

func TestMain(m *testing.M) {
	testenv.Clear()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "factstream-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		bin = dir
		build("factstream", ".")
		build("fakeservice", "./testdata/fakeservice")
		for _, name := range slices.Concat(up.Services...) {
			if err := os.Link(filepath.Join(bin, "fakeservice"), filepath.Join(bin, name)); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}

func build(name, pkg string) {
	if output, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build %s: %v\n%s", pkg, err, output))
	}
}

// notebook is one `factstream up` on directories of its own.
type notebook struct {
	t              *testing.T
	cmd            *exec.Cmd
	data, fake     string
	stdout, stderr *buffer
	ended          chan struct{} // closed when the process has ended
}

// patience is how long anything may take; the machine may be busy with other tests.
const patience = time.Minute

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

// prepare makes a notebook that is not started yet. Pairs of env come after the defaults and win.
func prepare(t *testing.T, args []string, env ...string) *notebook {
	t.Helper()
	n := &notebook{t: t, data: filepath.Join(t.TempDir(), "data"), fake: t.TempDir(),
		stdout: &buffer{}, stderr: &buffer{}, ended: make(chan struct{})}
	n.cmd = exec.Command(filepath.Join(bin, "factstream"), append([]string{"up"}, args...)...)
	n.cmd.Env = append(append(os.Environ(), "FAKE_DIR="+n.fake, "FACTSTREAM_DATA="+n.data, "FACTSTREAM_HTTP=127.0.0.1:0"), env...)
	n.cmd.Stdout, n.cmd.Stderr = n.stdout, n.stderr
	return n
}

func (n *notebook) start() *notebook {
	n.t.Helper()
	require.NoError(n.t, n.cmd.Start())
	go func() {
		_ = n.cmd.Wait()
		close(n.ended)
	}()
	n.t.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		<-n.ended
	})
	return n
}

// ready waits until the greeting is printed and every service has said that it started.
func (n *notebook) ready() *notebook {
	n.t.Helper()
	n.eventually(func() bool {
		select {
		case <-n.ended:
			n.t.Fatalf("it ended\n%s%s", n.stdout, n.stderr)
		default:
		}
		return strings.Contains(n.stdout.String(), "Factstream is ready") && len(n.pids()) == 5
	})
	return n
}

// exit waits for the end and returns the exit code.
func (n *notebook) exit() int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		n.t.Fatalf("it does not end\n%s%s", n.stdout, n.stderr)
	}
	return n.cmd.ProcessState.ExitCode()
}

// complaint is the one line that says why nothing was started. Log lines of a server that lost the preferred port to
// another test between its check and its start do not count.
func (n *notebook) complaint() string {
	n.t.Helper()
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(n.stderr.String()), "\n"), func(line string) bool {
		return strings.Contains(line, "component=nats") && strings.Contains(line, "address already in use")
	})
	require.Len(n.t, lines, 1)
	return lines[0]
}

func (n *notebook) eventually(condition func() bool) {
	n.t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			n.t.Fatalf("it does not come about\n%s%s%v", n.stdout, n.stderr, n.events())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (n *notebook) tell(service, what string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(filepath.Join(n.fake, service+"."+what), nil, 0o600))
}

func (n *notebook) events() []string {
	text, _ := os.ReadFile(filepath.Join(n.fake, "events"))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// pids returns the process of each service that was started last.
func (n *notebook) pids() map[string]int {
	pids := map[string]int{}
	for _, event := range n.events() {
		if fields := strings.Fields(event); len(fields) > 2 && fields[0] == "start" {
			pids[fields[1]], _ = strconv.Atoi(fields[2])
		}
	}
	return pids
}

func (n *notebook) read(path ...string) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(n.t, err)
	return string(text)
}

// gone says whether the process has ended; one whose end nobody has collected yet has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestUpStartsFiveProcessesSaysWhereAndStopsInOrder(t *testing.T) {
	t.Parallel()
	n := prepare(t, nil, "TABSTACK_API_KEY=hush-key", "FACTSTREAM_BUDGET=77").start().ready()

	greeting := n.stdout.String()
	url := regexp.MustCompile(`ready: (http://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(greeting)
	require.NotNil(t, url, greeting)
	require.Equal(t, 3, strings.Count(greeting, "curl -s"))
	require.Contains(t, greeting, "replay: recorded runs on solid-state batteries are played")
	require.Contains(t, greeting, "extractive: rules, no language model; a hint")
	require.Contains(t, greeting, url[1]+"/api/v1/threads")

	password := n.read(embedded.CredentialsFile(n.data))[len(readers.ServiceUser)+1:]
	password = strings.TrimSpace(password)
	for name, pid := range n.pids() {
		env := n.read(n.fake, name+".env")
		require.Contains(t, env, "FACTSTREAM_HTTP="+strings.TrimPrefix(url[1], "http://")+"\n")
		require.Contains(t, env, "FACTSTREAM_DATA="+n.data+"\n")
		require.Contains(t, env, "FACTSTREAM_BUDGET=77\n")
		require.Contains(t, env, "TABSTACK_API_KEY=hush-key\n")
		require.Regexp(t, `(?m)^NATS_URL=nats://factstream:`+password+`@127\.0\.0\.1:\d+$`, env)
		if arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			require.Equal(t, filepath.Join(bin, name)+"\x00", string(arguments), "nothing is passed by arguments")
		}
		n.eventually(func() bool { // it says so after it has started
			log, _ := os.ReadFile(filepath.Join(up.LogDir(n.data), name+".log"))
			return strings.Contains(string(log), "an info line of "+name) && strings.Contains(n.stderr.String(), "a warning of "+name)
		})
		require.NotContains(t, n.read(up.LogDir(n.data), name+".log"), password)
	}
	require.NotContains(t, n.stderr.String(), "an info line")
	require.NotContains(t, greeting+n.stderr.String(), password)

	require.NoError(t, n.cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, 0, n.exit())
	var stops []string
	for _, event := range n.events() {
		if strings.HasPrefix(event, "stop") {
			stops = append(stops, event)
		}
	}
	require.Len(t, stops, 5)
	require.Equal(t, "stop gateway bus=true", stops[0])
	for _, stop := range stops {
		require.Contains(t, stop, "bus=true", "the bus is stopped last")
	}
	require.Contains(t, n.stdout.String(), "Factstream has stopped")
}

func TestAServiceThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	n := prepare(t, []string{"--on-restart=pause"}).start().ready()
	before := n.pids()["judge"]
	n.tell("judge", "crash")
	require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
	n.eventually(func() bool { return strings.Contains(n.stderr.String(), "panic: crash of judge") })
	require.NoError(t, os.Remove(filepath.Join(n.fake, "judge.crash")))
	crashes := n.pids()["judge"]
	n.eventually(func() bool { pid := n.pids()["judge"]; return pid != crashes && !gone(pid) })

	require.Contains(t, n.stderr.String(), "a service ended by itself and is started again")
	require.Contains(t, n.events(), fmt.Sprintf("start judge %d pause", before))
	require.Contains(t, n.events(), fmt.Sprintf("start judge %d continue", crashes), "a crash is no restart of the whole")
}

func TestAKilledSupervisorLeavesNothingBehindAndCanBeStartedAgain(t *testing.T) {
	t.Parallel()
	n := prepare(t, nil)
	n.tell("distiller", "deaf")
	n.start().ready()
	pids := n.pids()
	require.NoError(t, n.cmd.Process.Kill())
	n.exit()
	for _, pid := range pids {
		n.eventually(func() bool { return gone(pid) })
	}

	again := prepare(t, nil, "FACTSTREAM_DATA="+n.data)
	again.start().ready()
}

func TestASecondSignalEndsWhatDoesNotStop(t *testing.T) {
	t.Parallel()
	n := prepare(t, nil)
	n.tell("researcher", "deaf")
	n.start().ready()
	require.NoError(t, n.cmd.Process.Signal(syscall.SIGTERM))
	n.eventually(func() bool { return slices.Contains(n.events(), "stop judge bus=true") })
	require.NoError(t, n.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, n.exit())
	require.True(t, gone(n.pids()["researcher"]))
	require.Contains(t, n.stderr.String(), "did not stop in time")
}

func TestWhatCannotBeStartedSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for name, c := range map[string]struct {
		env  []string
		prep func(n *notebook)
		want []string
	}{
		"HTTP port in use": {env: []string{"FACTSTREAM_HTTP=127.0.0.1:" + port},
			want: []string{"the port is in use", "127.0.0.1:" + port, "FACTSTREAM_HTTP", fmt.Sprintf("process %d", os.Getpid())}},
		"NATS port in use": {env: []string{"NATS_PORT=" + port},
			want: []string{"the port is in use", "127.0.0.1:" + port, "NATS_PORT"}},
		"address of another machine": {env: []string{"FACTSTREAM_HTTP=192.0.2.1:80", "FACTSTREAM_TOKEN=a-token-of-this-test"},
			want: []string{"cannot listen on 192.0.2.1:80", "FACTSTREAM_HTTP"}},
		"newer format": {prep: func(n *notebook) {
			require.NoError(n.t, os.MkdirAll(n.data, 0o700))
			require.NoError(n.t, os.WriteFile(filepath.Join(n.data, "format"), []byte("99\n"), 0o600))
		}, want: []string{"newer version", "format 99"}},
		"no directory": {env: []string{"FACTSTREAM_DATA=" + file + "/below"},
			want: []string{"cannot make the data directory", "FACTSTREAM_DATA"}},
		"missing program": {prep: func(n *notebook) {
			alone := filepath.Join(n.t.TempDir(), "factstream")
			require.NoError(n.t, os.Link(filepath.Join(bin, "factstream"), alone))
			n.cmd.Path = alone
		}, want: []string{"a program is missing", "researcher, distiller, judge, briefer, gateway", "make build"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := prepare(t, nil, c.env...)
			if c.prep != nil {
				c.prep(n)
			}
			require.Equal(t, 1, n.start().exit())
			text := n.complaint()
			for _, part := range append(c.want, "factstream: ") {
				require.Contains(t, text, part)
			}
			require.Empty(t, n.stdout.String())
			require.NoFileExists(t, filepath.Join(n.fake, "events"), "no service was started")
		})
	}
}

func TestADirectoryIsUsedByOneAtATime(t *testing.T) {
	t.Parallel()
	server := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	first := prepare(t, nil).start().ready()
	for name, env := range map[string][]string{"embedded": nil, "elsewhere": {"NATS_URL=" + withCredentials(t, server)}} {
		second := prepare(t, nil, append(env, "FACTSTREAM_DATA="+first.data)...).start()
		require.Equal(t, 1, second.exit(), name)
		require.Contains(t, second.complaint(), fmt.Sprintf("held by process %d", first.cmd.Process.Pid), name)
	}
}

func TestAServerElsewhereIsUsedAndLeftRunning(t *testing.T) {
	t.Parallel()
	server := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	n := prepare(t, nil, "NATS_URL="+withCredentials(t, server)).start().ready()
	require.Contains(t, n.stdout.String(), server.URL())
	require.Contains(t, n.read(n.fake, "judge.env"), "NATS_URL="+withCredentials(t, server)+"\n")
	require.NoDirExists(t, filepath.Join(n.data, "store"))
	require.NoError(t, n.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, n.exit())
	bustest.Dial(t, server)

	wrong := prepare(t, nil, "NATS_URL="+strings.Replace(withCredentials(t, server), "@", "x@", 1)).start()
	require.Equal(t, 1, wrong.exit())
	require.Contains(t, wrong.complaint(), "is NATS_URL right")
}

func withCredentials(t *testing.T, server *embedded.Server) string {
	t.Helper()
	user, password, err := connect.ReadCredentials(server.CredentialsFile())
	require.NoError(t, err)
	return strings.Replace(server.URL(), "nats://", "nats://"+user+":"+password+"@", 1)
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{nil, 2, "", "factstream up"},
		{[]string{"help"}, 0, "Exit codes", ""},
		{[]string{"--help"}, 0, "Exit codes", ""},
		{[]string{"version"}, 0, "factstream dev", ""},
		{[]string{"down"}, 2, "", `no command "down"`},
		{[]string{"up", "--help"}, 0, "FACTSTREAM_HTTP", ""},
		{[]string{"up", "--verbose", "--help"}, 0, "--verbose", ""},
		{[]string{"up", "--budget=-1", "--mode=x"}, 2, "", "--budget=\"-1\": must be a whole number of credits"},
		{[]string{"up", "now"}, 2, "", "none are taken"},
	} {
		var out, err bytes.Buffer
		require.Equal(t, c.code, run(c.args, &out, &err), "%v", c.args)
		require.Contains(t, out.String(), c.out)
		require.Contains(t, err.String(), c.err)
		if c.out == "" {
			require.Empty(t, out.String())
		}
		if c.err == "" {
			require.Empty(t, err.String())
		}
	}
}
