//go:build threeservers

package e2e

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/embedded"
)

// onThreeServers is everything that up-cluster starts, in the order in which it is stopped from behind.
var onThreeServers = [][]string{
	{"bus-1", "bus-2", "bus-3"},
	{"researcher", "researcher-2", "distiller", "distiller-2", "judge", "judge-2", "briefer", "briefer-2"},
	{"gateway", "gateway-2"},
}

func upCluster(t *testing.T, env ...string) *cluster {
	t.Helper()
	return startBy(t, "up-cluster", 13, env...)
}

// gateways are the two ways into a cluster.
func (c *cluster) gateways() []*api {
	c.t.Helper()
	return []*api{c.api, {t: c.t, url: c.greeted(`and: (http://127\.0\.0\.1:\d+)\n`)}}
}

// factstream runs a command of the program on this cluster's data directory and gives its exit code and what it said.
func (c *cluster) factstream(args ...string) (code int, said string) {
	c.t.Helper()
	command := exec.Command(filepath.Join(bin, "factstream"), args...)
	command.Env = append(append(os.Environ(), "FACTSTREAM_HTTP=127.0.0.1:0", "FACTSTREAM_DATA="+c.data), c.env...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		require.NotNil(c.t, command.ProcessState, "%v", err)
	}
	return command.ProcessState.ExitCode(), output.String()
}

func TestThreeServersAndTwoOfEveryServiceAreStartedKeptAndStoppedInOrder(t *testing.T) {
	provider := standin.Start(t, standin.Options{Key: key})
	c := upCluster(t, "TABSTACK_BASE_URL="+provider.URL(), "TABSTACK_API_KEY="+key)
	gateways := c.gateways()
	for _, group := range onThreeServers {
		for _, name := range group {
			require.Contains(t, c.pids(), name)
		}
	}
	for line := range strings.Lines(c.stderr.String()) { // a start in good order says nothing, or on a slow machine what it waits for
		require.Regexp(t, "JetStream does not answer, waiting|not ready yet", line)
	}
	first := c.ask("What do three servers keep?")
	c.completed(c.researched(first.ID, nil).ID, 1)
	second := gateways[1].ask("And what does the other gateway?")
	gateways[1].completed(gateways[1].researched(second.ID, nil).ID, 1)

	// A server that dies comes back where it was, with what it had.
	for number, address := range strings.Split(c.bus, ",") {
		name := onThreeServers[0][number]
		c.kill(name)
		eventually(t, name+" listens where it was", func() bool {
			connection, err := net.Dial("tcp", strings.TrimPrefix(address, "nats://"))
			return err == nil && connection.Close() == nil
		})
		c.awaitReplicas()
		require.DirExists(t, filepath.Join(embedded.ServerDir(c.data, number+1), "store"))
	}
	c.completed(c.researched(second.ID, nil).ID, 1)

	// A key that one gateway saves the researchers and the other gateway can read: they share its file.
	call[map[string]any](gateways[1], http.StatusOK, http.MethodPut, base+"/settings", map[string]any{"tabstack_key": key})
	eventually(t, "the first gateway knows the key", func() bool {
		return call[map[string]any](c.api, http.StatusOK, http.MethodGet, base+"/settings", nil)["tabstack_key_set"] == true
	})
	c.completed(c.researched(first.ID, nil).ID, 1)
	require.Equal(t, 4, provider.Stats().Calls)

	// A backup is taken from the servers as they run; another may not start beside them.
	code, said := c.factstream("backup", filepath.Join(t.TempDir(), "notebook.backup"))
	require.Zero(t, code, said)
	code, said = c.factstream("verify")
	require.Zero(t, code, said)
	for _, command := range []string{"up", "up-cluster"} {
		code, said = c.factstream(command)
		require.Equal(t, 1, code, said)
		require.Contains(t, said, "the data directory is in use")
	}

	c.signal(os.Interrupt)
	require.Zero(t, c.exit())
	stopped := c.stopped()
	require.Len(t, stopped, 13)
	require.ElementsMatch(t, onThreeServers[2], stopped[:2])
	require.ElementsMatch(t, onThreeServers[1], stopped[2:10])
	require.ElementsMatch(t, onThreeServers[0], stopped[10:])

	code, said = c.factstream("up")
	require.Equal(t, 1, code)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
	require.Contains(t, said, "belongs to three servers")
	require.Contains(t, said, "factstream up-cluster")
	file := filepath.Join(t.TempDir(), "notebook.backup")
	code, said = c.factstream("backup", file)
	require.Zero(t, code, said)

	// What was there is there again, and a supervisor that is killed leaves nothing behind.
	c.again()
	c.spent(first.ID, 500)
	c.signal(syscall.SIGKILL)
	require.Equal(t, -1, c.exit())
	c.nobodyLeft(patience)
	c.again()
	c.spent(second.ID, 500)
	c.completed(c.researched(first.ID, nil).ID, 1)
	c.signal(os.Interrupt)
	require.Zero(t, c.exit())

	// A backup goes into an empty notebook on three servers too.
	other := upCluster(t)
	other.signal(os.Interrupt)
	require.Zero(t, other.exit())
	code, said = other.factstream("restore", file)
	require.Zero(t, code, said)
	other.again()
	other.spent(first.ID, 500)
	other.awaitReplicas()
}

func TestWhatACommandOfThreeServersCannotStartIsSaidInOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() //nolint:errcheck // a test's listener
	alone := start(t)
	alone.signal(os.Interrupt)
	require.Zero(t, alone.exit())
	for name, c := range map[string]struct {
		env  []string
		code int
		says []string
	}{
		"the directory of a single server": {[]string{"FACTSTREAM_DATA=" + alone.data}, 1, []string{"belongs to a single server", "`factstream up`"}},
		"an HTTP port that is taken":       {[]string{"FACTSTREAM_HTTP=" + taken.Addr().String()}, 1, []string{"the port is in use", "FACTSTREAM_HTTP"}},
		"a NATS port that is taken":        {[]string{"NATS_PORT=" + port(t, taken.Addr())}, 1, []string{"the port is in use", "NATS_PORT"}},
		"a bus elsewhere":                  {[]string{"NATS_URL=nats://127.0.0.1:1"}, 1, []string{"NATS_URL", "`factstream up`"}},
		"another number of copies":         {[]string{"NATS_REPLICAS=5"}, 2, []string{"NATS_REPLICAS must be 3"}},
		"a short lease":                    {[]string{"LEASE_TTL=2s"}, 2, []string{"LEASE_TTL", "at least 10s"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			tried := &cluster{t: t, data: filepath.Join(t.TempDir(), "data"), env: c.env}
			code, said := tried.factstream("up-cluster")
			require.Equal(t, c.code, code, said)
			lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
			for _, part := range c.says {
				require.Contains(t, lines[len(lines)-1], part)
			}
			if c.code == 1 {
				require.Len(t, lines, 1, said)
			}
		})
	}
}

func port(t *testing.T, address net.Addr) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address.String())
	require.NoError(t, err)
	return port
}
