package backup

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/settings"
)

// settingsFile is the form of settings.json and keys.json: that of the settings in the HTTP API.
type settingsFile struct {
	Provider    *string     `json:"provider,omitempty"`
	Mode        *string     `json:"mode,omitempty"`
	Budget      *int        `json:"budget,omitempty"`
	Depth       *int        `json:"depth,omitempty"`
	Engine      *string     `json:"engine,omitempty"`
	Ollama      *ollamaFile `json:"ollama,omitempty"`
	TabstackKey *string     `json:"tabstack_key,omitempty"`
	BraveKey    *string     `json:"brave_key,omitempty"`
}

type ollamaFile struct {
	Host       *string `json:"host,omitempty"`
	ChatModel  *string `json:"chat_model,omitempty"`
	EmbedModel *string `json:"embed_model,omitempty"`
	NumCtx     *int    `json:"num_ctx,omitempty"`
}

// settingsOf is what was saved, without the keys.
func settingsOf(saved settings.Saved) settingsFile {
	doc := settingsFile{Provider: saved.Provider, Mode: saved.Mode, Budget: saved.Budget, Depth: saved.Depth, Engine: saved.Engine}
	ollama := ollamaFile{Host: saved.OllamaHost, ChatModel: saved.OllamaChatModel, EmbedModel: saved.OllamaEmbedModel, NumCtx: saved.OllamaNumCtx}
	if ollama != (ollamaFile{}) {
		doc.Ollama = &ollama
	}
	return doc
}

// keysOf is the saved keys, in clear text.
func keysOf(saved settings.Saved) settingsFile {
	return settingsFile{TabstackKey: reveal(saved.TabstackKey), BraveKey: reveal(saved.BraveKey)}
}

func reveal(key config.Secret) *string {
	if !key.Set() {
		return nil
	}
	text := key.Reveal()
	return &text
}

// CompareSettings compares what is saved in the place of the snapshot with what the file has. Of keys it tells no more than that they are not the same;
// those of a file without keys are not compared. In the very notebook that the file is of, settings that were saved since are a note.
func (s Snapshot) CompareSettings(ctx context.Context, store *settings.Store, f *File) (Report, error) {
	var r Report
	differ := func(format string, args ...any) { r.differ("settings", format, args...) }
	if s.Created.Equal(f.manifest.StreamCreated) {
		changed, err := store.Changed(ctx)
		if err != nil {
			return r, err
		}
		if changed.After(f.manifest.Created) {
			differ = func(format string, args ...any) {
				r.note("since the backup the settings were changed: "+format, args...)
			}
		}
	}
	saved, err := store.Load(ctx)
	var unreadable *settings.KeyError
	if err != nil && !errors.As(err, &unreadable) {
		return r, err
	}
	var kept settingsFile
	if err := f.readSettings(&kept); err != nil {
		return r, err
	}
	here, there := flat(settingsOf(saved)), flat(settingsFile{
		Provider: kept.Provider, Mode: kept.Mode, Budget: kept.Budget, Depth: kept.Depth, Engine: kept.Engine, Ollama: kept.Ollama,
	})
	names := maps.Clone(here)
	maps.Copy(names, there)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r.Compared++
		if a, b := shownSetting(here, name), shownSetting(there, name); a != b {
			differ("%s is %s, and %s in the backup", name, a, b)
		}
	}
	if !f.manifest.Keys {
		return r.close(), nil
	}
	if unreadable != nil {
		differ("the saved keys cannot be compared with those of the backup: %v", unreadable)
		return r.close(), nil
	}
	mine, theirs := flat(keysOf(saved)), flat(settingsFile{TabstackKey: kept.TabstackKey, BraveKey: kept.BraveKey})
	for _, name := range []string{"brave_key", "tabstack_key"} {
		r.Compared++
		a, set := mine[name]
		b, kept := theirs[name]
		switch {
		case set && !kept:
			differ("%s is set, and not in the backup", name)
		case kept && !set:
			differ("%s is not set, and is in the backup", name)
		case a != b:
			differ("%s is another than in the backup", name)
		}
	}
	return r.close(), nil
}

// flat gives the values that are set, as JSON, under the names of the HTTP API.
func flat(doc settingsFile) map[string]string {
	values := map[string]string{}
	add := func(name string, value any, set bool) {
		if set {
			body, _ := json.Marshal(value) // a string or a number
			values[name] = string(body)
		}
	}
	text := func(name string, value *string) { add(name, value, value != nil) }
	number := func(name string, value *int) { add(name, value, value != nil) }
	text("provider", doc.Provider)
	text("mode", doc.Mode)
	number("budget", doc.Budget)
	number("depth", doc.Depth)
	text("engine", doc.Engine)
	if o := doc.Ollama; o != nil {
		text("ollama.host", o.Host)
		text("ollama.chat_model", o.ChatModel)
		text("ollama.embed_model", o.EmbedModel)
		number("ollama.num_ctx", o.NumCtx)
	}
	text("tabstack_key", doc.TabstackKey)
	text("brave_key", doc.BraveKey)
	return values
}

func shownSetting(values map[string]string, name string) string {
	if value, set := values[name]; set {
		return value
	}
	return "not set"
}
