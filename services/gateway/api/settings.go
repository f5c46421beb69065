package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/settings"
)

// Settings are the values that count. Keys are told only as set or not.
type Settings struct {
	TabstackKeySet bool           `json:"tabstack_key_set"`
	BraveKeySet    bool           `json:"brave_key_set"`
	Provider       string         `json:"provider" doc:"Of new threads"`
	Mode           string         `json:"mode" doc:"Of new threads"`
	Budget         int            `json:"budget" doc:"Credits of a new thread"`
	Depth          int            `json:"depth" doc:"Of new threads"`
	Ollama         OllamaSettings `json:"ollama"`
	Engine         string         `json:"engine" doc:"auto, ollama or extractive; of new threads"`
	KeyError       *string        `json:"key_error" doc:"Why a saved key cannot be read"`
	TokenRequired  bool           `json:"token_required" doc:"Whether requests need the access token"`
}

// OllamaSettings say where the local models are.
type OllamaSettings struct {
	Host       string `json:"host"`
	ChatModel  string `json:"chat_model"`
	EmbedModel string `json:"embed_model"`
	NumCtx     int    `json:"num_ctx" doc:"Tokens"`
}

// PutSettings is the body of PUT /settings: what is left out stays, null forgets what is saved and brings the environment's value back.
type PutSettings struct {
	TabstackKey Nullable[string] `json:"tabstack_key,omitempty,omitzero"`
	BraveKey    Nullable[string] `json:"brave_key,omitempty,omitzero"`
	Provider    Nullable[string] `json:"provider,omitempty,omitzero"`
	Mode        Nullable[string] `json:"mode,omitempty,omitzero"`
	Budget      Nullable[int]    `json:"budget,omitempty,omitzero"`
	Depth       Nullable[int]    `json:"depth,omitempty,omitzero"`
	Ollama      PutOllama        `json:"ollama,omitempty,omitzero"`
	Engine      Nullable[string] `json:"engine,omitempty,omitzero"`
}

// PutOllama is the part of PutSettings about the models.
type PutOllama struct {
	Host       Nullable[string] `json:"host,omitempty,omitzero"`
	ChatModel  Nullable[string] `json:"chat_model,omitempty,omitzero"`
	EmbedModel Nullable[string] `json:"embed_model,omitempty,omitzero"`
	NumCtx     Nullable[int]    `json:"num_ctx,omitempty,omitzero"`
}

func (s *Server) settingsRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/settings", "get-settings", "The values that count now"), s.getSettings)
	operation(s, api, op(http.MethodPut, "/settings", "put-settings", "Save values; they count from the next run on"), s.putSettings)
}

func (s *Server) getSettings(ctx context.Context, _ *struct{}) (*Body[Settings], error) {
	saved, err := s.Settings.Load(ctx)
	var unreadable *settings.KeyError
	if err != nil && !errors.As(err, &unreadable) {
		return nil, err
	}
	e := saved.Effective(s.Config)
	v := Settings{
		TabstackKeySet: e.TabstackKey.Set(), BraveKeySet: e.BraveKey.Set(), Provider: e.Provider, Mode: e.Mode, Budget: e.Budget, Depth: e.Depth,
		Ollama: OllamaSettings{Host: e.Ollama.Host, ChatModel: e.Ollama.ChatModel, EmbedModel: e.Ollama.EmbedModel, NumCtx: e.Ollama.NumCtx},
		Engine: e.Engine, TokenRequired: s.Config.Token.Set(),
	}
	if unreadable != nil {
		why := unreadable.Error()
		v.KeyError = &why
	}
	return body(v), nil
}

func (s *Server) putSettings(ctx context.Context, in *struct{ Body PutSettings }) (*Body[Settings], error) {
	b := in.Body
	if p := b.Provider; p.Value != nil {
		if err := availableProvider(*p.Value); err != nil {
			return nil, err
		}
	}
	patch := settings.Patch{
		Provider: change(b.Provider), Mode: change(b.Mode), Budget: change(b.Budget), Depth: change(b.Depth), Engine: change(b.Engine),
		Ollama: settings.OllamaPatch{
			Host: change(b.Ollama.Host), ChatModel: change(b.Ollama.ChatModel), EmbedModel: change(b.Ollama.EmbedModel), NumCtx: change(b.Ollama.NumCtx),
		},
		TabstackKey: s.changeKey(b.TabstackKey), BraveKey: s.changeKey(b.BraveKey),
	}
	if err := s.Settings.Save(ctx, patch); err != nil {
		return nil, err
	}
	s.models.forget()
	return s.getSettings(ctx, nil)
}

func change[T any](n Nullable[T]) settings.Change[T] {
	switch {
	case !n.Set:
		return settings.Change[T]{}
	case n.Value == nil:
		return settings.Forget[T]()
	}
	return settings.Set(*n.Value)
}

// changeKey also keeps a new key out of this process's log.
func (s *Server) changeKey(n Nullable[string]) settings.Change[config.Secret] {
	if n.Value == nil {
		return change(Nullable[config.Secret]{Set: n.Set})
	}
	s.Redactor.Add(*n.Value)
	return settings.Set(config.Secret(*n.Value))
}
