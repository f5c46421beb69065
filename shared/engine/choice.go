package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/text"
)

// of opens the engine of a step's thread. Auto is decided here, once for the thread. A language model is recorded before it is asked;
// while the engine without one makes its first outcome, it is being recorded (Recorded). After that the thread waits for its engine and
// never takes the other.
func (e *Engines) of(ctx context.Context, step Step, shown *sign) (*Engine, error) {
	m := &Engine{step: step, model: extractive.New(), engines: e, shown: shown, since: e.s.Now()}
	name := e.setting(step.Thread)
	if name == model.EngineAuto {
		var err error
		if name, err = e.choose(ctx, step); err != nil {
			return nil, err
		}
		if name == model.EngineOllama {
			if name, err = e.keepChoice(ctx, step, name); err != nil {
				return nil, err
			}
		} else {
			m.recorded = e.recording(ctx, step, name)
		}
	}
	if name == model.EngineOllama {
		local, err := e.ollama(ctx)
		if err != nil {
			return nil, err
		}
		m.model, m.shared = local, true
	}
	var err error
	if m.Info, err = m.model.Info(ctx); err != nil {
		m.Info.Engine = name
		m.wait(ctx, "the model, which is not there yet")
		return nil, err
	}
	return m, nil
}

func (e *Engines) setting(thread string) (engine string) {
	e.s.Tail.View(thread, func(t *notebook.Thread) { engine = t.Settings.Engine })
	return engine
}

// choose decides auto.
func (e *Engines) choose(ctx context.Context, step Step) (name string, err error) {
	local, err := e.ollama(ctx)
	if err != nil {
		return "", err
	}
	name, why, err := model.Choose(ctx, model.EngineAuto, local)
	if err == nil {
		e.s.Log.Info().Str("thread", step.Thread).Str("engine", name).Str("why", why).Msg("engine chosen")
	}
	return name, err
}

// keepChoice records a choice of auto and gives the one that counts: another worker of the thread may have been faster.
func (e *Engines) keepChoice(ctx context.Context, step Step, name string) (string, error) {
	// With an id of its own: a person may set the thread back to auto, and the next choice for the same trigger is another event.
	origin := notebook.Origin{Cause: step.Trigger, Seed: text.RandomID()}
	if _, err := e.s.Appender.Append(ctx, step.Thread, notebook.SetEngine{Engine: name}, origin); err != nil {
		return "", fmt.Errorf("record the engine of the thread: %w", err)
	}
	if recorded := e.setting(step.Thread); recorded != model.EngineAuto && recorded != "" {
		name = recorded
	}
	return name, step.Points.Chosen.Hit(ctx)
}

// errOtherEngine means that auto was decided otherwise, by another worker or by a person, while a step was done with this engine: it is
// done again.
var errOtherEngine = errors.New("another engine was set for the thread meanwhile")

// recording records a choice beside the work. What it returns waits for that, as often as it is called.
func (e *Engines) recording(ctx context.Context, step Step, name string) func() error {
	return sync.OnceValue(background(func() error {
		counts, err := e.keepChoice(ctx, step, name)
		if err == nil && counts != name {
			err = errOtherEngine
		}
		return err
	}))
}

// background runs fn at once; what it returns waits for the outcome, and is to be called once.
func background(fn func() error) (outcome func() error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // the worker would not catch it here
				done <- fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
			}
		}()
		done <- fn()
	}()
	runtime.Gosched() // where there is one processor, it would else wait until the work is done
	return func() error { return <-done }
}

// ollama is the client for the server and models that are set now. A change of the settings counts from the next step on; steps
// that are under way end with the client that they have.
func (e *Engines) ollama(ctx context.Context) (*ollama.Engine, error) {
	saved, err := e.s.Settings.Load(ctx)
	var key *settings.KeyError
	if err != nil && !errors.As(err, &key) { // a provider's key that cannot be read is not the model's matter
		return nil, err
	}
	set := saved.Effective(e.s.Config).Ollama
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil && e.clients == set {
		return e.client, nil
	}
	client, err := ollama.New(ollama.Config{Host: set.Host, ChatModel: set.ChatModel, EmbedModel: set.EmbedModel, NumCtx: set.NumCtx})
	if err != nil { // until somebody changes the setting, no model answers
		return nil, fmt.Errorf("%w: %w", model.ErrAway, err)
	}
	if e.client != nil {
		e.client.Close()
	}
	e.client, e.clients = client, set
	return client, nil
}
