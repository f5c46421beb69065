// Package settings holds what a person has set while everything runs: defaults of new threads, the models, the API keys.
// Every process loads them when it needs them, so that a change counts from the next run on, without a restart.
//
// A value that is saved wins over the environment, which counts only while none is saved. Forgetting a saved value
// brings the environment's back, for keys too. Keys are kept encrypted.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/document"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
)

// Settings are the values that count: what is saved, else what the process was started with.
type Settings struct {
	Provider string // "tabstack" or "brave", of new threads
	Mode     string // "fast" or "balanced", of new threads
	Budget   int    // credits of a new thread, >= 0
	Depth    int    // depth limit of a new thread, >= 0
	Ollama   config.Ollama
	Engine   string // "auto", "ollama" or "extractive"

	TabstackKey, BraveKey config.Secret
}

// The providers that a thread may have.
const (
	Tabstack = "tabstack"
	Brave    = "brave"
)

// Key returns the API key of provider; it is not set for a provider that there is none of.
func (s Settings) Key(provider string) config.Secret {
	switch provider {
	case Tabstack:
		return s.TabstackKey
	case Brave:
		return s.BraveKey
	}
	return ""
}

// Live says whether a new thread of provider asks the real one; else a recorded stream is played.
func (s Settings) Live(cfg config.Config, provider string) bool {
	base := map[string]string{Tabstack: cfg.Tabstack.BaseURL, Brave: cfg.Brave.BaseURL}[provider]
	return s.Key(provider).Set() && cfg.Live(base)
}

// Saved is what a person has saved; nil and unset are what the environment decides.
type Saved struct {
	Provider, Mode, Engine                        *string
	Budget, Depth                                 *int
	OllamaHost, OllamaChatModel, OllamaEmbedModel *string
	OllamaNumCtx                                  *int

	TabstackKey, BraveKey config.Secret
}

// Effective returns the values that count.
func (s Saved) Effective(cfg config.Config) Settings {
	return Settings{
		Provider: or(s.Provider, Tabstack),
		Mode:     or(s.Mode, cfg.Mode),
		Budget:   or(s.Budget, cfg.Budget),
		Depth:    or(s.Depth, cfg.Depth),
		Ollama: config.Ollama{
			Host:       or(s.OllamaHost, cfg.Ollama.Host),
			ChatModel:  or(s.OllamaChatModel, cfg.Ollama.ChatModel),
			EmbedModel: or(s.OllamaEmbedModel, cfg.Ollama.EmbedModel),
			NumCtx:     or(s.OllamaNumCtx, cfg.Ollama.NumCtx),
		},
		Engine:      or(s.Engine, cfg.Engine),
		TabstackKey: orSecret(s.TabstackKey, cfg.Tabstack.APIKey),
		BraveKey:    orSecret(s.BraveKey, cfg.Brave.APIKey),
	}
}

// KeyError says which saved key cannot be read, and why; it wraps ErrUnreadable or ErrKeyFile. The provider must then
// not be taken as one without a key, nor may the environment's key stand in.
type KeyError struct {
	Provider string // "tabstack" or "brave"
	Err      error
}

// Error names the provider, the reason and the way out.
func (e *KeyError) Error() string {
	return fmt.Sprintf("API key of %s: %v; bring that key file back (FACTSTREAM_KEY_FILE), or save the key again", e.Provider, e.Err)
}

// Unwrap returns the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// Store is the bucket of settings. It may be used by several goroutines and processes.
type Store struct {
	bucket jetstream.KeyValue
	keys   keyFile
}

// Open opens the bucket that topology.Declare made. The key file is cfg.KeyFile, made when the first key is saved.
func Open(ctx context.Context, js jetstream.JetStream, cfg config.Config) (*Store, error) {
	bucket, err := js.KeyValue(ctx, topology.BucketSettings)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", topology.BucketSettings, err)
	}
	return &Store{bucket: bucket, keys: keyFile(cfg.KeyFile)}, nil
}

// Load returns what is saved, now. When keys cannot be read the error holds a *KeyError for each (errors.As finds the
// first), and everything else is returned as it is saved. Any other error means that the bus did not answer.
func (s *Store) Load(ctx context.Context) (Saved, error) {
	body, _, err := document.Read(ctx, s.bucket, documentKey)
	if err != nil {
		return Saved{}, fmt.Errorf("load the settings: %w", err)
	}
	doc, err := parse(body)
	if err != nil {
		return Saved{}, fmt.Errorf("load the settings: %w", err)
	}
	saved := doc.saved()
	var unreadable []error
	for _, key := range []struct {
		provider, name string
		sealed         box
		text           *config.Secret
	}{
		{Tabstack, tabstackKey, doc.TabstackKey, &saved.TabstackKey},
		{Brave, braveKey, doc.BraveKey, &saved.BraveKey},
	} {
		if key.sealed == nil {
			continue
		}
		text, err := s.keys.open(key.name, key.sealed)
		if err != nil {
			unreadable = append(unreadable, &KeyError{key.provider, err})
		}
		*key.text = config.Secret(text)
	}
	return saved, errors.Join(unreadable...)
}

// Changed is when something was saved last; the zero time when nothing ever was.
func (s *Store) Changed(ctx context.Context) (time.Time, error) {
	entry, err := s.bucket.Get(ctx, documentKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("load the settings: %w", err)
	}
	return entry.Created(), nil
}

// Save makes the changes of patch and nothing else, also when another process saves at the same time. A value that is
// not allowed is a *config.Error naming its field, and then nothing is saved.
func (s *Store) Save(ctx context.Context, patch Patch) error {
	if err := patch.check(); err != nil {
		return err
	}
	err := document.Change(ctx, s.bucket, documentKey, func(old []byte) ([]byte, error) {
		doc, err := parse(old)
		if err != nil {
			return nil, err
		}
		if err := patch.apply(&doc, s.keys); err != nil {
			return nil, err
		}
		return json.Marshal(doc)
	})
	if err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	return nil
}

// documentKey is the one key of the bucket that this package has, so that all that is saved at once is seen at once.
const documentKey = "settings"

// The names that saved keys are bound to.
const (
	tabstackKey = "tabstack_key"
	braveKey    = "brave_key"
)

// savedDocument is the document as it is kept. Fields are only ever added.
type savedDocument struct {
	Provider         *string `json:"provider,omitempty"`
	Mode             *string `json:"mode,omitempty"`
	Budget           *int    `json:"budget,omitempty"`
	Depth            *int    `json:"depth,omitempty"`
	OllamaHost       *string `json:"ollama_host,omitempty"`
	OllamaChatModel  *string `json:"ollama_chat_model,omitempty"`
	OllamaEmbedModel *string `json:"ollama_embed_model,omitempty"`
	OllamaNumCtx     *int    `json:"ollama_num_ctx,omitempty"`
	Engine           *string `json:"engine,omitempty"`
	TabstackKey      box     `json:"tabstack_key,omitempty"`
	BraveKey         box     `json:"brave_key,omitempty"`
}

func (d savedDocument) saved() Saved {
	return Saved{
		Provider: d.Provider, Mode: d.Mode, Engine: d.Engine, Budget: d.Budget, Depth: d.Depth,
		OllamaHost: d.OllamaHost, OllamaChatModel: d.OllamaChatModel, OllamaEmbedModel: d.OllamaEmbedModel, OllamaNumCtx: d.OllamaNumCtx,
	}
}

// parse reads the document; nil is an empty one.
func parse(body []byte) (doc savedDocument, err error) {
	if body == nil {
		return doc, nil
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return doc, fmt.Errorf("what is saved cannot be read: %w", err)
	}
	return doc, nil
}

func or[T any](saved *T, otherwise T) T {
	if saved != nil {
		return *saved
	}
	return otherwise
}

func orSecret(saved, otherwise config.Secret) config.Secret {
	if saved.Set() {
		return saved
	}
	return otherwise
}

// checks says by which variable of the configuration the value of a field is checked.
var checks = map[string]string{
	"mode": "FACTSTREAM_MODE", "budget": "FACTSTREAM_BUDGET", "depth": "FACTSTREAM_DEPTH", "engine": "MODEL_ENGINE",
	"ollama.host": "OLLAMA_HOST", "ollama.chat_model": "OLLAMA_CHAT_MODEL", "ollama.embed_model": "OLLAMA_EMBED_MODEL",
	"ollama.num_ctx": "OLLAMA_NUM_CTX", "tabstack_key": "TABSTACK_API_KEY", "brave_key": "BRAVE_API_KEY",
}

// check returns nil, or the problem of the value of field, named as in the API.
func check(field, value string) []config.Problem {
	if field == "provider" {
		if value == Tabstack || value == Brave {
			return nil
		}
		return []config.Problem{{Name: field, Value: value, Allowed: "must be tabstack or brave"}}
	}
	var bad *config.Error
	if !errors.As(config.Check(checks[field], value), &bad) {
		return nil
	}
	problem := bad.Problems[0]
	problem.Name = field
	return []config.Problem{problem}
}

// Patch is a change of what is saved. A field left alone stays as it is. Its JSON is the body of PUT /settings: null
// forgets what is saved.
type Patch struct {
	Provider    Change[string]        `json:"provider,omitzero"`
	Mode        Change[string]        `json:"mode,omitzero"`
	Budget      Change[int]           `json:"budget,omitzero"`
	Depth       Change[int]           `json:"depth,omitzero"`
	Ollama      OllamaPatch           `json:"ollama,omitzero"`
	Engine      Change[string]        `json:"engine,omitzero"`
	TabstackKey Change[config.Secret] `json:"tabstack_key,omitzero"`
	BraveKey    Change[config.Secret] `json:"brave_key,omitzero"`
}

// OllamaPatch is the part of Patch about the models.
type OllamaPatch struct {
	Host       Change[string] `json:"host,omitzero"`
	ChatModel  Change[string] `json:"chat_model,omitzero"`
	EmbedModel Change[string] `json:"embed_model,omitzero"`
	NumCtx     Change[int]    `json:"num_ctx,omitzero"`
}

// Change is what is to become of one value: nothing (the zero Change), another value, or nothing saved any more.
type Change[T any] struct {
	asked bool
	value *T
}

// Set changes to value.
func Set[T any](value T) Change[T] { return Change[T]{asked: true, value: &value} }

// Forget removes what is saved.
func Forget[T any]() Change[T] { return Change[T]{asked: true} }

// UnmarshalJSON reads null as Forget and anything else as Set; a field that is absent never comes here.
func (c *Change[T]) UnmarshalJSON(body []byte) error {
	c.asked, c.value = true, nil
	return json.Unmarshal(body, &c.value)
}

// MarshalJSON is the reverse, with secrets shown only as set.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

// check returns a *config.Error with every value that is not allowed.
func (p Patch) check() error {
	var problems []config.Problem
	text := func(field string, c Change[string]) {
		if c.value != nil {
			problems = append(problems, check(field, *c.value)...)
		}
	}
	number := func(field string, c Change[int]) {
		if c.value != nil {
			problems = append(problems, check(field, strconv.Itoa(*c.value))...)
		}
	}
	secret := func(field string, c Change[config.Secret]) {
		if c.value != nil {
			problems = append(problems, check(field, c.value.Reveal())...)
		}
	}
	text("provider", p.Provider)
	text("mode", p.Mode)
	number("budget", p.Budget)
	number("depth", p.Depth)
	text("ollama.host", p.Ollama.Host)
	text("ollama.chat_model", p.Ollama.ChatModel)
	text("ollama.embed_model", p.Ollama.EmbedModel)
	number("ollama.num_ctx", p.Ollama.NumCtx)
	text("engine", p.Engine)
	secret(tabstackKey, p.TabstackKey)
	secret(braveKey, p.BraveKey)
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

func (p Patch) apply(doc *savedDocument, keys keyFile) error {
	change(&doc.Provider, p.Provider)
	change(&doc.Mode, p.Mode)
	change(&doc.Budget, p.Budget)
	change(&doc.Depth, p.Depth)
	change(&doc.OllamaHost, p.Ollama.Host)
	change(&doc.OllamaChatModel, p.Ollama.ChatModel)
	change(&doc.OllamaEmbedModel, p.Ollama.EmbedModel)
	change(&doc.OllamaNumCtx, p.Ollama.NumCtx)
	change(&doc.Engine, p.Engine)
	return errors.Join(
		changeKey(&doc.TabstackKey, p.TabstackKey, tabstackKey, keys),
		changeKey(&doc.BraveKey, p.BraveKey, braveKey, keys))
}

func change[T any](field **T, c Change[T]) {
	if c.asked {
		*field = c.value
	}
}

func changeKey(field *box, c Change[config.Secret], name string, keys keyFile) (err error) {
	switch {
	case !c.asked:
	case c.value == nil:
		*field = nil
	default:
		*field, err = keys.seal(name, c.value.Reveal())
	}
	return err
}
