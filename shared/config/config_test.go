package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	cfg, err := Load(nil, env(), "researcher")
	require.NoError(t, err)
	require.Equal(t, Config{
		Service: "researcher",
		HTTP:    "127.0.0.1:8080", Data: "data", KeyFile: "data/secret.key",
		Budget: 2000, Depth: 3, Mode: "fast",
		NATS:        NATS{Replicas: 1},
		Tabstack:    Tabstack{BaseURL: "https://api.tabstack.ai"},
		Brave:       Brave{BaseURL: "https://api.search.brave.com"},
		Ollama:      Ollama{Host: "http://127.0.0.1:11434", ChatModel: "llama3.2:3b", EmbedModel: "nomic-embed-text", NumCtx: 8192},
		Engine:      "auto",
		RetryDelays: []time.Duration{30 * time.Second, 2 * time.Minute},
		CallTimeout: 15 * time.Minute, IdleTimeout: 6 * time.Minute, AckWait: 15 * time.Second, LeaseTTL: 15 * time.Second,
		OnRestart: "continue", LogLevel: "info",
	}, cfg)
}

func TestFlagsOverrideTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg, err := Load([]string{"--budget", "10", "-mode=balanced", "--offline", "--retry-delays=none", "--key-file", "k"},
		env("FACTSTREAM_BUDGET", "20", "FACTSTREAM_DEPTH", " 7 ", "OFFLINE", "no", "TABSTACK_FETCH_TIMEOUT", "45"), "gateway")
	require.NoError(t, err)
	require.Equal(t, 10, cfg.Budget)
	require.Equal(t, 7, cfg.Depth)
	require.Equal(t, "balanced", cfg.Mode)
	require.True(t, cfg.Offline)
	require.Empty(t, cfg.RetryDelays)
	require.Equal(t, 45*time.Second, cfg.Tabstack.FetchTimeout)
	require.Equal(t, "k", cfg.KeyFile)
}

func TestEveryBadValueIsRefusedByNameWithWhatIsAllowed(t *testing.T) {
	t.Parallel()
	bad := map[string][]string{
		"FACTSTREAM_HTTP":        {"8080", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", "a/b:1"},
		"FACTSTREAM_DATA":        {"a\x00b"},
		"FACTSTREAM_TOKEN":       {"two words of a token", "ü-of-sixteen-and-more", "fifteen-letters"},
		"FACTSTREAM_KEY_FILE":    {"a\x00b"},
		"FACTSTREAM_BUDGET":      {"-1", "1.5", "many", "99999999999999999999"},
		"FACTSTREAM_DEPTH":       {"-1", "101"},
		"FACTSTREAM_MODE":        {"slow", "FAST"},
		"NATS_URL":               {"http://h:1", "nats://", "nats://a,ftp://b"},
		"NATS_PORT":              {"-1", "65536"},
		"NATS_REPLICAS":          {"0", "2", "x"},
		"TABSTACK_API_KEY":       {"new\nline"},
		"TABSTACK_BASE_URL":      {"api.tabstack.ai", "http://api.tabstack.ai", "https://u:p@h", "https://h?x=1", "https://h#f", "file:///x"},
		"TABSTACK_FETCH_TIMEOUT": {"0", "1500ms", "2h", "soon"},
		"BRAVE_API_KEY":          {"sp ace"},
		"BRAVE_BASE_URL":         {"http://192.168.0.1"},
		"OFFLINE":                {"perhaps"},
		"REPLAY_FILE":            {"a\x00b"},
		"REPLAY_DELAY":           {"-1s", "20", "2m"},
		"MODEL_ENGINE":           {"gpt"},
		"OLLAMA_HOST":            {"ftp://x", "http://", "http://u:p@h"},
		"OLLAMA_CHAT_MODEL":      {"a b"},
		"OLLAMA_EMBED_MODEL":     {"a\tb"},
		"OLLAMA_NUM_CTX":         {"0", "100", "x"},
		"RETRY_DELAYS":           {"30", "1s,", "-1s", "1s,2s,3s,4s,5s,6s,7s,8s,9s,10s,11s"},
		"CALL_TIMEOUT":           {"0s", "25h", "15"},
		"IDLE_TIMEOUT":           {"1ms"},
		"ACK_WAIT":               {"100ms", "11m"},
		"LEASE_TTL":              {"0s"},
		"ON_RESTART":             {"stop"},
		"LOG_LEVEL":              {"loud"},
	}
	for _, name := range Variables() {
		require.NotEmpty(t, bad[name], "no bad value is tried for %s", name)
		for _, value := range bad[name] {
			_, err := Load(nil, env(name, value), "x")
			var e *Error
			require.ErrorAs(t, err, &e, "%s=%q", name, value)
			require.Len(t, e.Problems, 1)
			require.Equal(t, name, e.Problems[0].Name)
			require.NotEmpty(t, e.Problems[0].Allowed)
			require.Error(t, Check(name, value))
		}
	}
}

func TestAllProblemsAreShownAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load([]string{"--depth", "x"}, env("FACTSTREAM_BUDGET", "-3", "LOG_LEVEL", "loud", "TABSTACK_API_KEY", "a secret"), "x")
	require.EqualError(t, err, `FACTSTREAM_BUDGET="-3": must be a whole number of credits from 0 to 1000000000
--depth="x": must be a whole number from 0 to 100
TABSTACK_API_KEY: must be visible ASCII characters without spaces
LOG_LEVEL="loud": must be trace, debug, info, warn or error`)
}

func TestArgumentsThatAreNotKnownAreErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--nonsense":              "not defined: -nonsense",
		"extra":                   "none are taken",
		"--tabstack-api-key=abcd": "not defined",
		"--token=abcd":            "not defined",
		"--budget":                "needs an argument",
		"--nats-url=nats://u:p@h": "must not hold a user or password",
	} {
		_, err := Load([]string{args}, env(), "x")
		require.ErrorContains(t, err, want, args)
	}
	_, err := Load([]string{"--nats-url=nats://127.0.0.1:4222"}, env(), "x")
	require.NoError(t, err)
}

func TestHelpNamesEveryVariableAndItsFlag(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"-h", "--help"} {
		_, err := Load([]string{arg}, env(), "judge")
		require.ErrorIs(t, err, ErrHelp)
	}
	help := Help("judge")
	require.NotContains(t, Help("judge", "NATS_URL"), "--nats-url")
	require.Panics(t, func() { Help("judge", "NO_SUCH_VARIABLE") }, "a variable of another name would stay in the help")
	for _, v := range variables {
		require.Contains(t, help, v.name)
		require.NotEmpty(t, v.help)
		if !v.secret {
			require.Contains(t, help, "--"+v.flag())
		}
	}
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), columns, line)
	}
}

func TestAnotherAddressThanLoopbackNeedsAToken(t *testing.T) {
	t.Parallel()
	for addr, local := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:0": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:1": false, ":8080": false, "192.168.1.1:1": false, "[::]:1": false, "example.org:1": false, "127.0.0.1.example.org:1": false,
	} {
		_, err := Load(nil, env("FACTSTREAM_HTTP", addr), "x")
		if local {
			require.NoError(t, err, addr)
			continue
		}
		require.ErrorContains(t, err, "FACTSTREAM_TOKEN", addr)
		_, err = Load(nil, env("FACTSTREAM_HTTP", addr, "FACTSTREAM_TOKEN", "sixteen-letters."), "x")
		require.NoError(t, err, addr)
	}
}

func TestShortLeasesOnlyWithOneServer(t *testing.T) {
	t.Parallel()
	_, err := Load(nil, env("LEASE_TTL", "1s"), "x")
	require.NoError(t, err)
	_, err = Load(nil, env("LEASE_TTL", "1s", "NATS_REPLICAS", "3"), "x")
	require.ErrorContains(t, err, "LEASE_TTL")
}

func TestEnvironIsReadBackToTheSameConfig(t *testing.T) {
	t.Parallel()
	want, err := Load(
		[]string{"--http", "127.0.0.1:0", "--offline", "--replay-delay=20ms", "--retry-delays", "1s, 2s", "--nats-replicas", "3"},
		env("TABSTACK_API_KEY", "tk", "BRAVE_API_KEY", "bk", "FACTSTREAM_TOKEN", "a-token-to-pass-on", "NATS_URL", "nats://u:p@127.0.0.1:1",
			"TABSTACK_FETCH_TIMEOUT", "30s", "REPLAY_FILE", "f"), "x")
	require.NoError(t, err)
	m := map[string]string{}
	for _, pair := range want.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	got, err := Load(nil, func(name string) string { return m[name] }, "x")
	require.NoError(t, err)
	require.Equal(t, want, got)

	want.RetryDelays = nil
	require.Contains(t, want.Environ(), "RETRY_DELAYS=none")
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	cfg, err := Load(nil, env("TABSTACK_API_KEY", "hush-1", "BRAVE_API_KEY", "hush-2", "FACTSTREAM_TOKEN", "hush-3-of-sixteen",
		"NATS_URL", "nats://u:hush-4@h:1"), "x")
	require.NoError(t, err)
	encoded, err := json.Marshal(cfg)
	require.NoError(t, err)
	all := string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		all += fmt.Sprintf(verb, cfg) + fmt.Sprintf(verb, cfg.Tabstack.APIKey)
	}
	require.NotContains(t, all, "hush")
	require.NotContains(t, all, fmt.Sprintf("%x", "hush"))
	require.Equal(t, "(set)", cfg.Token.String())
	require.Equal(t, "(not set)", Secret("").String())
	require.ElementsMatch(t, []string{"hush-1", "hush-2", "hush-3-of-sixteen", "nats://u:hush-4@h:1", "hush-4"}, cfg.Secrets())
}

func TestWhatMayBeCalled(t *testing.T) {
	t.Parallel()
	const real, standin = "https://api.tabstack.ai", "http://127.0.0.1:9000"
	for _, c := range []struct {
		offline bool
		replay  string
		url     string
		want    bool
	}{
		{false, "", real, true},
		{true, "", real, false},
		{true, "", standin, true},
		{true, "", "http://[::1]:1", true},
		{true, "", "://", false},
		{false, "x.sse", real, false},
		{false, "x.sse", standin, false},
	} {
		require.Equal(t, c.want, Config{Offline: c.offline, Replay: Replay{File: c.replay}}.Live(c.url), "%+v", c)
	}
}

func FuzzLoadNeverPanicsAndNamesWhatItRefuses(f *testing.F) {
	for _, v := range variables {
		f.Add(v.name, v.fallback, "--"+v.flag()+"="+v.fallback)
	}
	f.Fuzz(func(t *testing.T, name, value, arg string) {
		cfg, err := Load([]string{arg}, env(name, value), "x")
		var e *Error
		switch {
		case err == nil, errors.Is(err, ErrHelp):
		case errors.As(err, &e):
			if len(e.Problems) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		default:
			t.Fatalf("untyped error %v", err)
		}
		m := map[string]string{}
		for _, pair := range cfg.Environ() {
			k, v, _ := strings.Cut(pair, "=")
			m[k] = v
		}
		if err == nil {
			if _, err := Load(nil, func(n string) string { return m[n] }, "x"); err != nil {
				t.Fatalf("its own environment is refused: %v", err)
			}
		}
	})
}
