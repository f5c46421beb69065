package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
)

// anyPorts are ports that nothing listened on a moment ago.
func anyPorts(t *testing.T) [embedded.Servers]int {
	t.Helper()
	ports, err := embedded.AnyPorts(embedded.DefaultHost, embedded.Servers)
	require.NoError(t, err)
	return [embedded.Servers]int(ports)
}

func TestServersOfOneDirectoryFindEachOtherAndShareTheirCredentials(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	limit, err := embedded.PrepareCluster(home)
	require.NoError(t, err)
	var servers []*embedded.Server
	routes := anyPorts(t)
	for try := 1; servers == nil; try++ { // another program may be faster to take a port
		servers, err = together(t, home, limit, routes)
		if err != nil {
			require.Less(t, try, 5, "%v", err)
			routes = anyPorts(t)
		}
	}
	for i, server := range servers {
		require.Equal(t, embedded.CredentialsFile(home), server.CredentialsFile())
		require.Equal(t, embedded.ReaderCredentialsFile(home), server.ReaderCredentialsFile())
		for _, opts := range [][]nats.Option{server.ClientOptions(), server.ReaderOptions()} {
			nc, err := nats.Connect(server.URL(), opts...)
			require.NoError(t, err)
			require.Equal(t, embedded.ServerName(i+1), nc.ConnectedServerName())
			require.Eventually(t, func() bool { return len(nc.DiscoveredServers()) == embedded.Servers-1 }, bustest.Patience, 10*time.Millisecond, "it is told of the others")
			nc.Close()
		}
	}

	// A server that does not know the password is not let in.
	other := t.TempDir()
	_, err = embedded.PrepareCluster(other)
	require.NoError(t, err)
	from := routes
	from[0] = anyPorts(t)[0]
	said := &said{}
	stranger, err := embedded.Start(t.Context(), embedded.Options{
		Dir: embedded.ServerDir(other, 1), MaxStore: limit, Logger: zerolog.New(said), Cluster: &embedded.Cluster{Number: 1, Home: other, Routes: from},
	})
	require.NoError(t, err)
	t.Cleanup(stranger.Shutdown)
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "Authorization Violation") }, bustest.Patience, 10*time.Millisecond)
	nc, err := nats.Connect(stranger.URL(), stranger.ClientOptions()...)
	require.NoError(t, err)
	defer nc.Close()
	// A server tells its address before it looks at the password; the stranger forgets it with the route that is closed then.
	require.Eventually(t, func() bool { return len(nc.DiscoveredServers()) == 0 }, bustest.Patience, 10*time.Millisecond)
}

// together starts all servers at once; when one fails, none is left.
func together(t *testing.T, home string, limit int64, routes [embedded.Servers]int) ([]*embedded.Server, error) {
	servers, faults := make([]*embedded.Server, embedded.Servers), make([]error, embedded.Servers)
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() {
			servers[i], faults[i] = embedded.Start(context.WithoutCancel(t.Context()), embedded.Options{
				Dir: embedded.ServerDir(home, i+1), MaxStore: limit, NoSync: true, Logger: zerolog.Nop(),
				Cluster: &embedded.Cluster{Number: i + 1, Home: home, Routes: routes},
			})
		})
	}
	starting.Wait()
	err := errors.Join(faults...)
	for _, server := range servers {
		switch {
		case server == nil:
		case err != nil:
			server.Shutdown()
		default:
			t.Cleanup(server.Shutdown)
		}
	}
	if err != nil {
		return nil, err
	}
	return servers, nil
}

// said is what a server has logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestADirectoryIsOfOneServerOrOfThree(t *testing.T) {
	t.Parallel()
	three := t.TempDir()
	_, err := embedded.PrepareCluster(three)
	require.NoError(t, err)
	_, err = embedded.Start(t.Context(), embedded.Options{Dir: three, NoSync: true, Logger: zerolog.Nop()})
	require.ErrorIs(t, err, embedded.ErrOfCluster)
	require.ErrorContains(t, err, three)
	require.NoDirExists(t, filepath.Join(three, "store"))

	one := t.TempDir()
	bustest.Serve(t, embedded.Options{Dir: one}).Shutdown()
	_, err = embedded.PrepareCluster(one)
	require.ErrorIs(t, err, embedded.ErrOfOne)
	require.NoDirExists(t, embedded.ServerDir(one, 1))

	newer := t.TempDir()
	require.NoError(t, os.Mkdir(embedded.ServerDir(newer, 2), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(embedded.ServerDir(newer, 2), "format"), []byte(strconv.Itoa(embedded.Format+1)), 0o600))
	_, err = embedded.PrepareCluster(newer)
	require.ErrorIs(t, err, embedded.ErrNewerFormat)
}

func TestTheServersOfADirectoryCanBeStartedTogetherForACommand(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.False(t, embedded.Kept(home))
	for i := range 2 {
		together, err := embedded.StartTogether(t.Context(), home, zerolog.Nop())
		require.NoError(t, err)
		_, err = embedded.StartTogether(t.Context(), home, zerolog.Nop())
		require.ErrorIs(t, err, embedded.ErrLocked)
		nc, js, err := connect.Dial(t.Context(), connect.Config{URL: together.URL(), Logger: zerolog.Nop(), Options: together.ClientOptions()})
		require.NoError(t, err)
		require.NoError(t, topology.Declare(t.Context(), js, topology.Options{Replicas: embedded.Servers}))
		ack, err := js.Publish(t.Context(), topology.Subject("ext", "noted", "t", "r", 0), nil)
		require.NoError(t, err)
		require.Equal(t, uint64(i+1), ack.Sequence, "what was there is there again")
		nc.Close()
		together.Shutdown()
		require.True(t, embedded.OfCluster(home))
	}
}

func TestThereIsNoFourthServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	_, err := embedded.PrepareCluster(home)
	require.NoError(t, err)
	_, err = embedded.Start(t.Context(), embedded.Options{Dir: embedded.ServerDir(home, 4), Cluster: &embedded.Cluster{Number: 4, Home: home, Routes: anyPorts(t)}})
	require.ErrorContains(t, err, "there is no server 4")
}
