package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/shared/access"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
)

// readyWait bounds how long readiness looks at each part.
const readyWait = 2 * time.Second

// maxBadShown events that could not be applied are listed; all are counted.
const maxBadShown = 20

// Ready is what /readyz tells. It is answered with 503 when ready is false.
type Ready struct {
	Ready      bool                `json:"ready"`
	Reasons    []string            `json:"reasons" doc:"Why it is not ready, or what is wrong all the same; for people"`
	Bus        bool                `json:"bus"`
	Model      ModelState          `json:"model"`
	Provider   ProviderState       `json:"provider"`
	Projection ProjectionState     `json:"projection"`
	Dead       uint64              `json:"dead" doc:"Messages that workers could not decode, and nobody has put back or passed"`
	BadEvents  []notebook.BadEvent `json:"bad_events" doc:"The first events that could not be applied, or are of a type that this version does not know, and nobody has passed"`
	BadCount   int                 `json:"bad_count"`
	StoreFree  int64               `json:"store_free" doc:"Bytes: the lesser of the bus's limit and this machine's disk; -1 when nobody can tell"`
}

// ModelState says which engine a new thread gets at this moment.
type ModelState struct {
	Engine    string   `json:"engine,omitempty" enum:"ollama,extractive" doc:"Left out while the settings cannot be read, as when the bus is away"`
	Installed []string `json:"installed"`
	Missing   []string `json:"missing"`
	Hint      string   `json:"hint" doc:"What would bring a language model; empty when nothing is to be done"`
}

// ProviderState says what a new thread's runs are. It is empty while the settings that decide it cannot be read.
type ProviderState struct {
	Mode string `json:"mode,omitempty" enum:"live,replay" doc:"Left out while the settings cannot be read, as when the bus is away"`
	Name string `json:"name,omitempty"`
}

// ProjectionState says how far notebook.db is.
type ProjectionState struct {
	Position uint64 `json:"position"`
	Lag      uint64 `json:"lag"`
}

// Health is what /healthz tells: that there is somebody to tell it.
type Health struct {
	OK bool `json:"ok"`
}

func (s *Server) healthRoutes(api huma.API) {
	get := func(path, id, summary string) huma.Operation {
		return huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary}
	}
	operation(s, api, get("/healthz", "healthz", "The process lives"), func(context.Context, *struct{}) (*Body[Health], error) {
		return body(Health{OK: true}), nil
	})
	readyz := get("/readyz", "readyz", "What works and what does not")
	readyz.Responses = map[string]*huma.Response{
		"503": holding[Ready](api.OpenAPI().Components.Schemas, "application/json", "Something does not work; reasons says what"),
	}
	operation(s, api, readyz, func(ctx context.Context, _ *struct{}) (*struct {
		Status int
		Body   Ready
	}, error) {
		out := &struct {
			Status int
			Body   Ready
		}{Status: http.StatusOK, Body: s.ready(ctx)}
		if !out.Body.Ready {
			out.Status = http.StatusServiceUnavailable
		}
		return out, nil
	})
}

// ready looks at everything once. Missing models or dead letters are told and keep nothing from working.
func (s *Server) ready(ctx context.Context) Ready {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	v := Ready{Ready: true, Reasons: []string{}, BadEvents: []notebook.BadEvent{}, StoreFree: -1}
	no := func(why string) { v.Ready, v.Reasons = false, append(v.Reasons, why) }

	type room struct {
		free int64
		err  error
	}
	asked := make(chan room, 1)
	go func() { // beside the rest, since what is away takes all of the time
		free, err := s.storeFree(ctx)
		asked <- room{free, err}
	}()

	v.Projection.Position = s.Projection.Position()
	lag, err := s.Projection.Lag(ctx)
	if v.Bus = err == nil && s.NC.IsConnected(); v.Bus {
		v.Projection.Lag = lag
	} else {
		no("the message bus does not answer")
	}
	if err := s.Projection.Trouble(); err != nil {
		no("notebook.db cannot be written: " + err.Error())
	}
	if v.Bus && lag > maxLag {
		no("the notebook is still being read")
	}
	saved, err := s.Settings.Load(ctx)
	var unreadable *settings.KeyError
	if errors.As(err, &unreadable) { // told, and no reason to be not ready: reading, replays and local stages go on
		v.Reasons, err = append(v.Reasons, unreadable.Error()), nil
	}
	if effective := saved.Effective(s.Config); err == nil {
		v.Provider = ProviderState{Mode: "replay", Name: effective.Provider}
		if access.Of(effective, s.Config, effective.Provider).Live {
			v.Provider.Mode = "live"
		}
		v.Model = s.models.get(ctx, s.Now(), effective)
	} else {
		v.Model = ModelState{Installed: []string{}, Missing: []string{}}
	}
	if v.Bus {
		if v.Dead, err = dead.Count(ctx, s.JS); err != nil {
			v.Reasons = append(v.Reasons, "dead letters cannot be counted")
		}
	}
	bad, count, err := s.badEvents(ctx, maxBadShown)
	if err != nil {
		no("notebook.db cannot be read")
	}
	v.BadEvents, v.BadCount = some(bad), count
	store := <-asked
	if v.Bus && store.err != nil { // one server of several still tells what it has
		no("the message bus stores nothing at this moment: more than half of its servers must be there, and one of them lead")
	}
	if v.StoreFree = store.free; v.StoreFree >= 0 && v.StoreFree < config.LeastFree { // what there is can be read all the same
		v.Reasons = append(v.Reasons, fmt.Sprintf("only %d MiB are free where the notebook is kept, and %d are needed: until there is room nothing is bought, and what is new may not be taken in",
			v.StoreFree>>20, config.LeastFree>>20))
	}
	return v
}

// badEvents lists the first events that could not be applied and nobody has passed, and how many there are. While the bus does not say which were passed,
// all are listed.
func (s *Server) badEvents(ctx context.Context, limit int) ([]notebook.BadEvent, int, error) {
	passed, err := dead.Passed(ctx, s.JS)
	if err != nil {
		s.Log.Debug().Err(err).Msg("what was passed is not known")
	}
	return s.Projection.BadEvents(context.WithoutCancel(ctx), passed, limit) // the file answers, whatever time the bus took
}

// maxLag is how many sequences the projection may be behind and still count as ready: a write waits for it anyway.
const maxLag = 1000

// storeFree is the lesser of what the bus may still store and what the disk of the data directory has; -1 when nobody can tell. Its error is the bus's:
// who has no leader cannot say what it may store.
func (s *Server) storeFree(ctx context.Context) (int64, error) {
	free := int64(-1)
	var fs syscall.Statfs_t
	if syscall.Statfs(s.Config.Data, &fs) == nil {
		free = int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the types differ between systems
	}
	store, limited, err := connect.StoreFree(ctx, s.JS)
	if err == nil && limited && (free < 0 || store < free) {
		free = store
	}
	return free, err
}

// modelState remembers for a moment what the model server said, since readiness is asked often.
type modelState struct {
	ask func(context.Context, settings.Settings) ModelState

	mu   sync.Mutex
	at   time.Time
	last ModelState
}

const modelRemembered = 5 * time.Second

func (m *modelState) get(ctx context.Context, now time.Time, effective settings.Settings) ModelState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || now.Sub(m.at) > modelRemembered {
		m.last, m.at = m.ask(ctx, effective), now
	}
	return m.last
}

func (m *modelState) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Time{}
}

// askModel says which engine the setting leads to now, and what would have to be done for a language model.
func (s *Server) askModel(ctx context.Context, effective settings.Settings) ModelState {
	v := ModelState{Engine: model.EngineExtractive, Installed: []string{}, Missing: []string{}}
	if effective.Engine == model.EngineExtractive {
		return v
	}
	o := effective.Ollama
	engine, err := ollama.New(ollama.Config{Host: o.Host, ChatModel: o.ChatModel, EmbedModel: o.EmbedModel, NumCtx: o.NumCtx})
	if err != nil {
		v.Hint = err.Error()
		return v
	}
	defer engine.Close()
	info, err := engine.Info(ctx)
	v.Installed = some(info.Installed)
	if err == nil || effective.Engine == model.EngineOllama { // chosen by name it is waited for, never replaced
		v.Engine = model.EngineOllama
	}
	var missing *model.MissingError
	switch {
	case errors.As(err, &missing):
		v.Missing, v.Hint = missing.Models, missing.Hint()
	case err != nil:
		v.Missing = []string{o.ChatModel, o.EmbedModel}
		v.Hint = "no Ollama answers at " + o.Host + ": install it from https://ollama.com and start it, then " + (&model.MissingError{Models: v.Missing}).Hint()
	}
	return v
}
