package settings

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/document"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type bundle struct {
	store *Store
	cfg   config.Config
	js    jetstream.JetStream
}

func setup(t *testing.T, env ...string) bundle {
	t.Helper()
	_, _, js := bustest.Start(t)
	vars := map[string]string{"FACTSTREAM_DATA": t.TempDir()}
	for i := 0; i < len(env); i += 2 {
		vars[env[i]] = env[i+1]
	}
	cfg, err := config.Load(nil, func(name string) string { return vars[name] }, "test")
	require.NoError(t, err)
	return bundle{open(t, js, cfg), cfg, js}
}

func open(t *testing.T, js jetstream.JetStream, cfg config.Config) *Store {
	t.Helper()
	store, err := Open(t.Context(), js, cfg)
	require.NoError(t, err)
	return store
}

func (b bundle) effective(t *testing.T) Settings {
	t.Helper()
	saved, err := b.store.Load(t.Context())
	require.NoError(t, err)
	return saved.Effective(b.cfg)
}

func TestTheEnvironmentCountsOnlyWhileNothingIsSaved(t *testing.T) {
	t.Parallel()
	b := setup(t, "FACTSTREAM_MODE", "balanced", "FACTSTREAM_BUDGET", "700", "OLLAMA_CHAT_MODEL", "tiny", "TABSTACK_API_KEY", "from-environment")
	before := b.effective(t)
	require.Equal(t, Settings{
		Provider: Tabstack, Mode: "balanced", Budget: 700, Depth: 3, Engine: "auto",
		Ollama:      config.Ollama{Host: "http://127.0.0.1:11434", ChatModel: "tiny", EmbedModel: "nomic-embed-text", NumCtx: 8192},
		TabstackKey: "from-environment",
	}, before)

	require.NoError(t, b.store.Save(t.Context(), Patch{
		Provider: Set(Brave), Mode: Set("fast"), Budget: Set(0), Depth: Set(1), Engine: Set("extractive"),
		Ollama:      OllamaPatch{Host: Set("http://127.0.0.1:9"), ChatModel: Set("a"), EmbedModel: Set("b"), NumCtx: Set(2048)},
		TabstackKey: Set[config.Secret]("saved-1"), BraveKey: Set[config.Secret]("saved-2"),
	}))
	require.Equal(t, Settings{
		Provider: Brave, Mode: "fast", Budget: 0, Depth: 1, Engine: "extractive",
		Ollama:      config.Ollama{Host: "http://127.0.0.1:9", ChatModel: "a", EmbedModel: "b", NumCtx: 2048},
		TabstackKey: "saved-1", BraveKey: "saved-2",
	}, b.effective(t))

	require.NoError(t, b.store.Save(t.Context(), Patch{Budget: Set(5)}))
	require.Equal(t, "fast", b.effective(t).Mode, "what a change does not name stays")

	require.NoError(t, b.store.Save(t.Context(), Patch{
		Provider: Forget[string](), Mode: Forget[string](), Budget: Forget[int](), Depth: Forget[int](), Engine: Forget[string](),
		Ollama:      OllamaPatch{Host: Forget[string](), ChatModel: Forget[string](), EmbedModel: Forget[string](), NumCtx: Forget[int]()},
		TabstackKey: Forget[config.Secret](), BraveKey: Forget[config.Secret](),
	}))
	require.Equal(t, before, b.effective(t), "what is forgotten is the environment's again")
}

func TestASavedKeyIsUsedByAnotherProcessAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := open(t, b.js, b.cfg)
	require.NoError(t, b.store.Save(t.Context(), Patch{TabstackKey: Set[config.Secret]("key-1")}))
	saved, err := other.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, "key-1", saved.TabstackKey.Reveal())
	require.False(t, saved.BraveKey.Set())
}

func TestKeysAreEncryptedWhereTheyAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.store.Save(t.Context(), Patch{TabstackKey: Set[config.Secret]("hush-hush"), BraveKey: Set[config.Secret]("hush-hush")}))
	entry, err := bustest.Bucket(t, b.js, topology.BucketSettings).Get(t.Context(), documentKey)
	require.NoError(t, err)
	require.NotContains(t, string(entry.Value()), "hush")
	var doc savedDocument
	require.NoError(t, json.Unmarshal(entry.Value(), &doc))
	require.NotContains(t, string(doc.TabstackKey), "hush")
	require.NotEqual(t, doc.TabstackKey, doc.BraveKey)

	info, err := os.Stat(b.cfg.KeyFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(b.cfg.KeyFile))
	require.NoError(t, err)
	require.Len(t, left, 1, "no draft is left behind")

	saved, err := b.store.Load(t.Context())
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", saved, saved, saved.Effective(b.cfg)), "hush")
}

func TestAnUnreadableKeyIsAnErrorAndNeverNoKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b bundle)
		want  error
	}{
		"another key file": {func(t *testing.T, b bundle) {
			require.NoError(t, os.WriteFile(b.cfg.KeyFile, []byte(strings.Repeat("ab", 32)), 0o600))
		}, ErrUnreadable},
		"no key file":                     {func(t *testing.T, b bundle) { require.NoError(t, os.Remove(b.cfg.KeyFile)) }, ErrUnreadable},
		"a key file that others can read": {func(t *testing.T, b bundle) { require.NoError(t, os.Chmod(b.cfg.KeyFile, 0o640)) }, ErrKeyFile},
		"a key file without a key": {func(t *testing.T, b bundle) {
			require.NoError(t, os.WriteFile(b.cfg.KeyFile, []byte("hello"), 0o600))
		}, ErrKeyFile},
		"a saved key put under another name": {func(t *testing.T, b bundle) {
			body, revision, err := document.Read(t.Context(), b.store.bucket, documentKey)
			require.NoError(t, err)
			doc, err := parse(body)
			require.NoError(t, err)
			doc.BraveKey, doc.TabstackKey = doc.TabstackKey, doc.BraveKey
			body, err = json.Marshal(doc)
			require.NoError(t, err)
			_, err = b.store.bucket.Update(t.Context(), documentKey, body, revision)
			require.NoError(t, err)
		}, ErrUnreadable},
		"a damaged key": {func(t *testing.T, b bundle) {
			_, err := b.store.bucket.PutString(t.Context(), documentKey, `{"tabstack_key":"AAAA","depth":7}`)
			require.NoError(t, err)
		}, ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "TABSTACK_API_KEY", "from-environment", "BRAVE_API_KEY", "from-environment")
			require.NoError(t, b.store.Save(t.Context(), Patch{TabstackKey: Set[config.Secret]("key-1"), Depth: Set(7)}))
			c.spoil(t, b)

			saved, err := b.store.Load(t.Context())
			var bad *KeyError
			require.ErrorAs(t, err, &bad)
			require.ErrorIs(t, err, c.want)
			require.NotContains(t, err.Error(), "key-1")
			require.Equal(t, 7, *saved.Depth, "the rest is as it is saved")
		})
	}
}

func TestAnUnreadableKeyIsMendedBySavingItAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.store.Save(t.Context(), Patch{TabstackKey: Set[config.Secret]("key-1")}))
	require.NoError(t, os.Remove(b.cfg.KeyFile))
	require.NoError(t, b.store.Save(t.Context(), Patch{TabstackKey: Set[config.Secret]("key-2")}))
	require.Equal(t, "key-2", b.effective(t).TabstackKey.Reveal())
}

func TestTwoWhoSaveAtOnceBothSave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	patches := []Patch{
		{Mode: Set("balanced")}, {Budget: Set(1)}, {Depth: Set(2)}, {Engine: Set("ollama")}, {Provider: Set(Brave)},
		{TabstackKey: Set[config.Secret]("key-1")}, {BraveKey: Set[config.Secret]("key-2")}, {Ollama: OllamaPatch{NumCtx: Set(4096)}},
	}
	var wg sync.WaitGroup
	for _, patch := range patches {
		store := open(t, b.js, b.cfg)
		wg.Go(func() { assert.NoError(t, store.Save(t.Context(), patch)) })
	}
	wg.Wait()
	got := b.effective(t)
	require.Equal(t, []any{"balanced", 1, 2, "ollama", Brave, "key-1", "key-2", 4096},
		[]any{got.Mode, got.Budget, got.Depth, got.Engine, got.Provider, got.TabstackKey.Reveal(), got.BraveKey.Reveal(), got.Ollama.NumCtx})
}

func TestOfManyWhoMakeTheKeyFileOneWins(t *testing.T) {
	t.Parallel()
	file := keyFile(filepath.Join(t.TempDir(), "new", "secret.key"))
	boxes := make([]box, 16)
	var wg sync.WaitGroup
	for i := range boxes {
		wg.Go(func() {
			var err error
			boxes[i], err = file.seal("x", "text")
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, sealed := range boxes {
		text, err := file.open("x", sealed)
		require.NoError(t, err)
		require.Equal(t, "text", text)
	}
}

func TestThePatchIsTheBodyOfTheRequest(t *testing.T) {
	t.Parallel()
	var patch Patch
	require.NoError(t, json.Unmarshal([]byte(`{"mode":"fast","budget":null,"tabstack_key":"k","brave_key":null,"ollama":{"num_ctx":2048}}`), &patch))
	require.Equal(t, Patch{
		Mode: Set("fast"), Budget: Forget[int](), TabstackKey: Set[config.Secret]("k"), BraveKey: Forget[config.Secret](),
		Ollama: OllamaPatch{NumCtx: Set(2048)},
	}, patch)
	shown, err := json.Marshal(patch)
	require.NoError(t, err)
	require.JSONEq(t, `{"mode":"fast","budget":null,"tabstack_key":"(set)","brave_key":null,"ollama":{"num_ctx":2048}}`, string(shown))
	require.Error(t, json.Unmarshal([]byte(`{"budget":"many"}`), &patch))
}

func TestWhatIsNotAllowedIsNamedAndNothingIsSaved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.store.Save(t.Context(), Patch{
		Provider: Set("other"), Mode: Set("slow"), Budget: Set(-1), Depth: Set(1000), Engine: Set(""),
		Ollama:      OllamaPatch{Host: Set("ftp://x"), ChatModel: Set("a b"), EmbedModel: Set(""), NumCtx: Set(1)},
		TabstackKey: Set[config.Secret]("new\nline"), BraveKey: Set[config.Secret](""),
	})
	var bad *config.Error
	require.ErrorAs(t, err, &bad)
	var names []string
	for _, problem := range bad.Problems {
		names = append(names, problem.Name)
	}
	require.Equal(t, []string{"provider", "mode", "budget", "depth", "ollama.host", "ollama.chat_model", "ollama.embed_model",
		"ollama.num_ctx", "engine", "tabstack_key", "brave_key"}, names)
	require.NotContains(t, err.Error(), "new")
	saved, err := b.store.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, Saved{}, saved)
}

func TestWhetherANewThreadIsLive(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(nil, func(string) string { return "" }, "test")
	require.NoError(t, err)
	with := Settings{TabstackKey: "k"}
	require.True(t, with.Live(cfg, Tabstack))
	require.False(t, with.Live(cfg, Brave), "no key")
	require.False(t, with.Live(cfg, "other"))
	require.False(t, Settings{}.Live(cfg, Tabstack))
	cfg.Offline = true
	require.False(t, with.Live(cfg, Tabstack))
	cfg.Tabstack.BaseURL = "http://127.0.0.1:1"
	require.True(t, with.Live(cfg, Tabstack), "a stand-in on this machine")
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"mode":"fast","budget":null,"ollama":{"host":"x"}}`))
	f.Add([]byte(`{"tabstack_key":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var patch Patch
		if json.Unmarshal(body, &patch) != nil || patch.check() != nil {
			return
		}
		var doc savedDocument
		file := keyFile(filepath.Join(t.TempDir(), "k"))
		if err := patch.apply(&doc, file); err != nil {
			t.Fatal(err)
		}
	})
}
