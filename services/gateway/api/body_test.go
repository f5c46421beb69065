package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestABodyThatDoesNotArriveIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway", func(c *config.Config) { c.HTTP = "127.0.0.1:0" })
	server, err := api.Open(t.Context(), s, api.Options{BodyTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	servicetest.Run(t, s, server.Parts()...)

	for _, c := range []struct {
		name, head string
		status     int
	}{
		{"a write", "POST /api/v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"question\":", http.StatusRequestTimeout},
		{"a write in chunks", "POST /api/v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"que", http.StatusRequestTimeout},
		{"a write that is refused", "POST /api/v1/threads HTTP/1.1\r\nHost: elsewhere.example\r\nContent-Length: 1000\r\n\r\n{", http.StatusForbidden},
		{"a read", "GET /api/v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr())
			require.NoError(t, err)
			defer conn.Close() //nolint:errcheck // only read
			require.NoError(t, conn.SetDeadline(time.Now().Add(servicetest.Wait)))
			_, err = io.WriteString(conn, c.head)
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer response.Body.Close() //nolint:errcheck // only read
			require.Equal(t, c.status, response.StatusCode)
			_, err = io.ReadAll(response.Body)
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed")
		})
	}
}

func TestACommandMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway", func(c *config.Config) { c.HTTP = "127.0.0.1:0" })
	const long = 5500 * time.Millisecond // the framework's own time for a body is 5 s
	server, err := api.Open(t.Context(), s, api.Options{CommandTimeout: long})
	require.NoError(t, err)
	servicetest.Run(t, s, server.Parts()...)
	send := func(method, path, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.Addr()+"/api/v1"+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	status, created := send(http.MethodPost, "/threads", `{"question":"Why?","auto":false}`)
	require.Equal(t, http.StatusCreated, status)
	var thread struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(created), &thread))
	bus.Server.Shutdown()
	began := time.Now()
	status, text := send(http.MethodPatch, "/threads/"+thread.ID, `{"title":"x"}`)
	require.GreaterOrEqual(t, time.Since(began), long)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "outcome-unknown", "what may have been stored is not called undone")
}

func TestAStreamOutlivesTheTimeForABody(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway", func(c *config.Config) { c.HTTP = "127.0.0.1:0" })
	server, err := api.Open(t.Context(), s, api.Options{BodyTimeout: time.Second, CommentEvery: 500 * time.Millisecond})
	require.NoError(t, err)
	servicetest.Run(t, s, server.Parts()...)

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr())
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // only read
	require.NoError(t, conn.SetDeadline(time.Now().Add(servicetest.Wait)))
	read := bufio.NewReader(conn)
	ask := func(head string) *http.Response {
		_, err := io.WriteString(conn, head)
		require.NoError(t, err)
		response, err := http.ReadResponse(read, nil)
		require.NoError(t, err)
		return response
	}
	body := `{"question":"Why?","auto":false}`
	created := ask("POST /api/v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n" + body)
	require.Equal(t, http.StatusCreated, created.StatusCode)
	_, err = io.Copy(io.Discard, created.Body)
	require.NoError(t, err)
	require.NoError(t, created.Body.Close())

	events := ask("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n") // on the same connection; closing the body would read on to the end that there is not
	comments := 0
	for lines := bufio.NewScanner(events.Body); comments < 3; {
		require.True(t, lines.Scan(), "the stream ended: %v", lines.Err())
		if strings.HasPrefix(lines.Text(), ":") {
			comments++
		}
	}
}
