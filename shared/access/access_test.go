package access

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	away = "https://provider.example"
	here = "http://127.0.0.1:9"
)

func TestLiveNeedsAKeyAndLeaveToCall(t *testing.T) {
	t.Parallel()
	live, replay := notebook.Access{Live: true}, notebook.Access{Replay: true}
	cases := map[string]struct {
		key, base, file string
		offline         bool
		provider        string
		want            notebook.Access
	}{
		"a key":                          {key: "k", base: away, provider: event.Tabstack, want: live},
		"no key":                         {base: away, provider: event.Tabstack, want: replay},
		"a key and OFFLINE":              {key: "k", base: away, offline: true, provider: event.Tabstack, want: replay},
		"OFFLINE and a stand-in":         {key: "k", base: here, offline: true, provider: event.Tabstack, want: live},
		"a key and REPLAY_FILE":          {key: "k", base: away, file: "run.sse", provider: event.Tabstack, want: replay},
		"no key and no recorded streams": {base: away, provider: event.Brave},
		"a key of brave":                 {key: "k", base: away, provider: event.Brave, want: live},
		"a provider nobody knows":        {key: "k", base: away, provider: "other"},
	}
	for name, c := range cases {
		cfg := config.Config{Offline: c.offline, Replay: config.Replay{File: c.file}}
		cfg.Tabstack.BaseURL, cfg.Brave.BaseURL = c.base, c.base
		got := Of(settings.Settings{TabstackKey: config.Secret(c.key), BraveKey: config.Secret(c.key)}, cfg, c.provider)
		require.Equal(t, c.want, got.Access, name)
		require.Equal(t, got.Live, got.Key.Set(), name)
	}
}

func TestAKeyThatCannotBeReadIsNeitherNoKeyNorAReplay(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	cfg := config.Config{KeyFile: filepath.Join(t.TempDir(), "secret.key")}
	cfg.Tabstack.BaseURL, cfg.Brave.BaseURL = here, here
	store, err := settings.Open(t.Context(), js, cfg)
	require.NoError(t, err)
	require.NoError(t, store.Save(t.Context(), settings.Patch{TabstackKey: settings.Set(config.Secret("saved-key"))}))
	got, err := Load(t.Context(), store, cfg, event.Tabstack)
	require.NoError(t, err)
	require.True(t, got.Live)
	require.Equal(t, "saved-key", got.Key.Reveal())

	require.NoError(t, os.Remove(cfg.KeyFile))
	_, err = Load(t.Context(), store, cfg, event.Tabstack)
	var unreadable *settings.KeyError
	require.ErrorAs(t, err, &unreadable)
	require.Equal(t, event.Tabstack, unreadable.Provider)
	_, err = Load(t.Context(), store, cfg, event.Brave)
	require.NoError(t, err, "the key of another provider does not matter")
	cfg.Replay.File = "run.sse"
	got, err = Load(t.Context(), store, cfg, event.Tabstack)
	require.NoError(t, err, "nothing is called, so no key is needed")
	require.Equal(t, notebook.Access{Replay: true}, got.Access)

	// With both unreadable, each is found by its provider.
	require.NoError(t, store.Save(t.Context(), settings.Patch{BraveKey: settings.Set(config.Secret("other-key"))}))
	require.NoError(t, os.Remove(cfg.KeyFile))
	cfg.Replay.File = ""
	for _, provider := range []string{event.Tabstack, event.Brave} {
		_, err = Load(t.Context(), store, cfg, provider)
		require.ErrorAs(t, err, &unreadable)
		require.Equal(t, provider, unreadable.Provider)
	}
}
