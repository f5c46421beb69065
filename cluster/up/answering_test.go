package up

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// greeter accepts connections as a server does: with a greeting, unless it hangs.
type greeter struct {
	member Member

	mu    sync.Mutex
	hangs bool
}

func newGreeter(t *testing.T, number int) *greeter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	g := &greeter{member: Member{Number: number, Port: listener.Addr().(*net.TCPAddr).Port}}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			if !g.hangs {
				_, _ = connection.Write([]byte("INFO {}\r\n"))
			}
			g.mu.Unlock()
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return g
}

func (g *greeter) hang(hangs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangs = hangs
}

// lines are what was logged, one a line, for more than one goroutine.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func (l lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing was said")
		return ""
	}
}

func TestServersThatHangAreNamedWithWhatItMeans(t *testing.T) {
	t.Parallel()
	servers := []*greeter{newGreeter(t, 1), newGreeter(t, 2), newGreeter(t, 3)}
	said := make(lines, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchServers(ctx, []Member{servers[0].member, servers[1].member, servers[2].member}, 10*time.Millisecond, zerolog.New(said))
	}()
	servers[1].hang(true)
	line := said.next(t)
	require.Contains(t, line, `"servers":"bus-2"`)
	require.Contains(t, line, "everything goes on")
	servers[0].hang(true)
	line = said.next(t)
	require.Contains(t, line, `"servers":"bus-1 bus-2"`)
	require.Contains(t, line, `"level":"error"`)
	require.Contains(t, line, "nothing can be stored")
	servers[0].hang(false)
	line = said.next(t)
	require.Contains(t, line, `"servers":"bus-2"`)
	servers[1].hang(false)
	require.Contains(t, said.next(t), "all servers answer again")
	stop()
	<-done
	require.Empty(t, said)
}

func TestAPortWithoutAServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
			_ = connection.Close()
		}
	}()
	require.False(t, greets(t.Context(), address))
	require.NoError(t, listener.Close())
	require.False(t, greets(t.Context(), address))
}
