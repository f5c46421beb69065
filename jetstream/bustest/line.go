package bustest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/embedded"
)

// Line lies between clients and a server, and loses requests while the connection
// stays in order for both sides: as when a server dies that had taken a request on
// to another one. What a client writes at once is lost together.
type Line struct {
	url    string
	silent atomic.Bool
	lose   atomic.Int32
}

// Between gives a line to srv that loses nothing yet. It ends with the test.
func Between(t testing.TB, srv *embedded.Server) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(embedded.DefaultHost, "0"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l := &Line{url: "nats://" + listener.Addr().String()}
	server := strings.TrimPrefix(srv.URL(), "nats://")
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(client, server)
		}
	}()
	return l
}

// URL is where clients connect to.
func (l *Line) URL() string { return l.url }

// Lose has the next n requests lost.
func (l *Line) Lose(n int) { l.lose.Store(int32(n)) }

// Left is how many of those are still to be lost.
func (l *Line) Left() int { return int(l.lose.Load()) }

// LoseAll has every request lost from now on.
func (l *Line) LoseAll() { l.silent.Store(true) }

// carry passes on what one client and the server write, until either ends.
func (l *Line) carry(client net.Conn, server string) {
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	go func() {
		_, _ = io.Copy(client, upstream)
		_ = client.Close()
	}()
	piece := make([]byte, 64<<10)
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		if bytes.Contains(piece[:n], []byte("PUB ")) && l.loses() { // also HPUB; pings and subscriptions pass
			continue
		}
		if _, err := upstream.Write(piece[:n]); err != nil {
			return
		}
	}
}

// loses says whether the request at hand gets lost.
func (l *Line) loses() bool {
	if l.silent.Load() {
		return true
	}
	for left := l.lose.Load(); left > 0; left = l.lose.Load() {
		if l.lose.CompareAndSwap(left, left-1) {
			return true
		}
	}
	return false
}
