// Package access says how a provider may be called at this moment: for real, by playing a recorded stream, or not at
// all. Whoever decides on a run and whoever makes its call ask here, so that they agree.
package access

import (
	"context"
	"errors"

	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
)

// Access is what Decide needs to know of a provider, and the key for whoever makes the call.
type Access struct {
	notebook.Access
	Key config.Secret // set exactly when Live
}

// Load reads the settings that are saved now and gives the access to provider. The error is a *settings.KeyError when
// the provider may be called but its saved key cannot be read: that is neither "no key" nor a reason to replay. The key
// of another provider does not matter. Any other error means that the bus did not answer.
func Load(ctx context.Context, store *settings.Store, cfg config.Config, provider string) (Access, error) {
	saved, err := store.Load(ctx)
	if unreadable := keyError(err, provider); unreadable != nil && Allowed(cfg, provider) {
		return Access{}, unreadable
	}
	if err != nil && keyError(err, "") == nil {
		return Access{}, err
	}
	return Of(saved.Effective(cfg), cfg, provider), nil
}

// Of is the access that settings give: live with a key, unless calls are not allowed (OFFLINE, REPLAY_FILE); else the
// recorded stream, of a provider that has one.
func Of(s settings.Settings, cfg config.Config, provider string) Access {
	if s.Live(cfg, provider) {
		return Access{Access: notebook.Access{Live: true}, Key: s.Key(provider)}
	}
	return Access{Access: notebook.Access{Replay: provider == event.Tabstack}}
}

// Allowed says whether provider may be called at all, whatever keys there are.
func Allowed(cfg config.Config, provider string) bool {
	return cfg.Live(baseURL(cfg, provider))
}

func baseURL(cfg config.Config, provider string) string {
	switch provider {
	case event.Tabstack:
		return cfg.Tabstack.BaseURL
	case event.Brave:
		return cfg.Brave.BaseURL
	}
	return ""
}

// keyError finds the error about the key of a provider, of any when provider is empty; nil when there is none.
func keyError(err error, provider string) *settings.KeyError {
	var one *settings.KeyError
	if errors.As(err, &one) && (provider == "" || one.Provider == provider) {
		return one
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			if found := keyError(e, provider); found != nil {
				return found
			}
		}
	}
	return nil
}
