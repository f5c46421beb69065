package up

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func load(t *testing.T, env ...string) config.Config {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(env); i += 2 {
		m[env[i]] = env[i+1]
	}
	cfg, err := config.Load(nil, func(name string) string { return m[name] }, "factstream")
	require.NoError(t, err)
	return cfg
}

func TestAFullDiskIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	require.NoError(t, enough("/d", leastFree, leastFree))
	err := enough("/d", leastFree-1, leastFree)
	require.ErrorIs(t, err, ErrDiskFull)
	require.EqualError(t, err, "the disk is too full: 255 MiB are free at /d, 256 MiB are needed; make room, or set FACTSTREAM_DATA to a place on another disk")

	dir := t.TempDir()
	require.EqualValues(t, leastFree, leastFor(dir), "a new notebook is there to be asked")
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	require.NoError(t, err)
	server.Shutdown()
	require.EqualValues(t, leastToRead, leastFor(dir), "what is kept can be read")
	full := readiness{Reasons: []string{"only 99 MiB are free"}}
	require.Contains(t, greeting(load(t), &bus{url: "nats://127.0.0.1:4222"}, full), "  trouble   only 99 MiB are free\n")
}

func TestTheServicesInheritWhatIsNotConfiguration(t *testing.T) {
	t.Parallel()
	cfg := load(t, "FACTSTREAM_BUDGET", "5")
	env := environment(cfg, &bus{url: "nats://u:p@127.0.0.1:1"},
		[]string{"PATH=/bin", "FACTSTREAM_BUDGET=9", "TABSTACK_API_KEY=stale", "FACTSTREAM_LIFELINE=else"})
	require.Contains(t, env, "PATH=/bin")
	require.Contains(t, env, "FACTSTREAM_BUDGET=5")
	require.Contains(t, env, "NATS_URL=nats://u:p@127.0.0.1:1")
	require.Contains(t, env, "FACTSTREAM_LIFELINE=stdin")
	require.NotContains(t, strings.Join(env, "\n"), "stale")
	require.Len(t, env, len(cfg.Environ())+3)
}

func TestTheGatewayIsAskedUntilItIsReady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		why    string
	}{
		"ready":        {200, `{"ready":true,"model":{"engine":"ollama"},"provider":{"mode":"live"}}`, ""},
		"not ready":    {503, `{"ready":false,"bus":"away"}`, `503 Service Unavailable: {"ready":false,"bus":"away"}`},
		"contradicted": {200, `{"ready":false}`, "200 OK"},
		"something":    {200, `<html>`, "the gateway answers 200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "Bearer t0ken-of-this-test" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			cfg := load(t, "FACTSTREAM_HTTP", server.Listener.Addr().String(), "FACTSTREAM_TOKEN", "t0ken-of-this-test")
			state, why := askReady(t.Context(), cfg)
			if c.why == "" {
				require.Empty(t, why)
				require.Equal(t, "ollama", state.Model.Engine)
				return
			}
			require.Contains(t, why, c.why)
		})
	}
	_, why := askReady(t.Context(), load(t, "FACTSTREAM_HTTP", "127.0.0.1:1"))
	require.Contains(t, why, "does not answer")
}

func TestTheGreetingSaysTheModeTheEngineAndWhatToTry(t *testing.T) {
	t.Parallel()
	state := func(mode, engine, hint string, missing ...string) (r readiness) {
		r.Provider.Mode, r.Model.Engine, r.Model.Hint, r.Model.Missing = mode, engine, hint, missing
		return r
	}
	b := &bus{url: "nats://u:p@127.0.0.1:4222"}
	for _, c := range []struct {
		env   []string
		state readiness
		want  []string
	}{
		{nil, state("replay", "extractive", ""), []string{"http://127.0.0.1:8080\n", "TABSTACK_API_KEY", "rules, no language model\n"}},
		{nil, state("live", "ollama", ""), []string{"runs are bought", " ollama\n"}},
		{nil, state("replay", "ollama", "ollama pull x", "x"), []string{"ollama, but x is missing; ollama pull x"}},
		{[]string{"OFFLINE", "1"}, state("replay", "extractive", ""), []string{"OFFLINE is set"}},
		{[]string{"REPLAY_FILE", "a.sse"}, state("replay", "extractive", ""), []string{"a.sse is played"}},
		{[]string{"FACTSTREAM_HTTP", "0.0.0.0:80", "FACTSTREAM_TOKEN", "hush-token-of-this-test"}, state("replay", "extractive", ""),
			[]string{"http://127.0.0.1:80\n", `-H "Authorization: Bearer $FACTSTREAM_TOKEN"`, "  export FACTSTREAM_TOKEN=..."}},
		{nil, state("", "extractive", ""), []string{"research  not known", "the settings cannot be read"}},
		{[]string{"FACTSTREAM_HTTP", "[::1]:80"}, state("replay", "extractive", ""), []string{"http://[::1]:80\n"}},
	} {
		text := greeting(load(t, c.env...), b, c.state)
		for _, part := range append(c.want, "nats://127.0.0.1:4222\n") {
			require.Contains(t, text, part)
		}
		require.NotContains(t, text, "hush")
		require.Equal(t, strings.Contains(text, "export"), strings.Contains(text, "Bearer"), "it is said where another terminal has it from")
		for line := range strings.Lines(text) {
			require.True(t, !strings.Contains(line, "export") || len(strings.TrimSuffix(line, "\n")) <= columns, line)
		}
		require.NotContains(t, text, "u:p@")
	}
	pulls := "no Ollama answers at http://127.0.0.1:11434: install it from https://ollama.com and start it, then ollama pull llama3.2:3b && ollama pull nomic-embed-text"
	told, _, _ := strings.Cut(greeting(load(t), b, state("replay", "extractive", pulls)), "Try next:") // a command is longer, to be copied whole
	for line := range strings.Lines(told) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), columns, line)
	}
}

func TestARecordingThatCannotBePlayedIsSaidBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	require.NoError(t, recording(""))
	dir := t.TempDir()
	require.ErrorContains(t, recording(dir+"/none.sse"), "REPLAY_FILE")
	require.ErrorContains(t, recording(dir), "is not a file")
	require.NoError(t, os.WriteFile(dir+"/a.sse", []byte("data: {}\n\n"), 0o600))
	require.NoError(t, recording(dir+"/a.sse"))
}

func TestAPortThatIsTakenIsSaidToBe(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() //nolint:errcheck // a test's listener
	_, err = freeAddress(taken.Addr().String())
	require.ErrorIs(t, err, ErrPortInUse)
	if holder := portHolder(taken.Addr().(*net.TCPAddr).Port); holder != "" {
		require.Contains(t, err.Error(), "process "+strconv.Itoa(os.Getpid()))
	}

	free, err := freeAddress("127.0.0.1:0")
	require.NoError(t, err)
	require.NotContains(t, free, ":0")
}

func TestErrorsForAPersonAreOneLine(t *testing.T) {
	t.Parallel()
	cfg := load(t, "NATS_URL", "nats://127.0.0.1:1")
	err := explain(errors.Join(context.DeadlineExceeded, errors.New("no servers")), cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, err.Error(), "\n")
	require.Contains(t, err.Error(), "NATS_URL")
}

func TestRunningThreadsArePausedWhenEverythingIsStartedAgain(t *testing.T) {
	t.Parallel()
	cfg := config.Config{Data: t.TempDir(), AckWait: time.Second, LeaseTTL: time.Second}
	standing := func(onRestart string, do func(*notebook.Appender)) (now string) {
		cfg.OnRestart = onRestart
		bus, err := openBus(t.Context(), cfg, zerolog.Nop())
		require.NoError(t, err)
		defer bus.close()
		nc, js, err := connect.Dial(t.Context(), connect.Config{URL: bus.url.Reveal(), Logger: zerolog.Nop()})
		require.NoError(t, err)
		defer nc.Close()
		tail := notebook.NewTail(js, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tail.Run(ctx) }()
		defer func() { cancel(); require.NoError(t, <-ended) }()
		if do != nil {
			do(notebook.NewAppender(js, tail, time.Now))
		}
		_, err = tail.CatchUp(t.Context())
		require.NoError(t, err)
		tail.View("t1", func(th *notebook.Thread) { now = th.Standing + ": " + th.Reason.Text })
		return now
	}
	require.Contains(t, standing("continue", func(a *notebook.Appender) {
		for _, cmd := range []notebook.Command{
			notebook.CreateThread{Question: "Why?", Settings: event.Settings{Provider: event.Tabstack, Mode: event.Fast, Batch: 1, Auto: true, Engine: "auto", Budget: 500}},
			notebook.Start{Access: notebook.Access{Replay: true}},
		} {
			_, err := a.Append(t.Context(), "t1", cmd, notebook.Origin{})
			require.NoError(t, err)
		}
	}), "running: ")
	require.Contains(t, standing("continue", nil), "running: ")
	require.Contains(t, standing("pause", nil), "paused: Everything was started again, with ON_RESTART=pause.")
}

func TestABusOfItsOwnIsNotOpenedBesideAnother(t *testing.T) {
	t.Parallel()
	err := Bus(t.Context(), load(t, "FACTSTREAM_DATA", t.TempDir(), "NATS_URL", "nats://127.0.0.1:4222"), io.Discard, zerolog.Nop())
	require.ErrorIs(t, err, ErrBusElsewhere)
}
