// Package research is the researcher: it turns requested runs into reports by paid calls, one at a time over all
// processes, and keeps what was bought before it uses it. Beside that it runs autopilot, the sweeper and the janitor.
package research

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/replay"
	"github.com/factstream/factstream/services/researcher/provider/tabstack"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/service"
)

// Options are the times and limits that the environment does not set. Zero values mean the defaults.
type Options struct {
	Sweep   time.Duration // between two looks for lost steps; 10 s
	Janitor time.Duration // between two clearings after the one at the start; 1 h
	Left    time.Duration // how old artifacts must be that are cleared because nothing refers to them; artifact.SafeAge
	// MinFree is how many bytes must be free where answers are kept before a call starts; 256 MiB. A full store refuses
	// every publish, renewals of the lease too.
	MinFree int64
	// Free gives the bytes that are free now; by default the lesser of the bus's store and the spool's file system.
	Free func(ctx context.Context) (int64, error)
	Room time.Duration // between two looks while there is too little; 2 s
	// Grace is how long a call may go on when the process is told to stop; the worker's default, 5 s. A call that is cut
	// then is bought again.
	Grace time.Duration
	// Settle is how long an answer is tried to be saved and settled, while the bus is away for instance, before it is left
	// in the spool for the next delivery; 10 min.
	Settle time.Duration
	// ModelAnswers says whether the model that is set answers; by default Ollama is asked.
	ModelAnswers func(ctx context.Context) error
}

// Slots of the workers: so many runs may wait for the provider with their message in hand, or be replayed at once. More
// would make a process that hangs (stopped, not killed) swallow more deliveries before another gets one: each free slot
// has a request open, and each costs an AckWait.
const (
	runSlots       = 4
	autopilotSlots = 2
)

// Researcher is the service with its providers and its spool.
type Researcher struct {
	*service.Service
	options Options
	live    provider.Provider // nil when calls beyond this machine are switched off
	replay  *replay.Replay
	spool   spool
	store   busStore
	playing playing
	stuck   prometheus.Gauge
}

// Parts is the researcher with the default options, for service.Main.
func Parts(_ context.Context, s *service.Service) ([]service.Part, error) {
	r, err := New(s, Options{})
	if err != nil {
		return nil, err
	}
	return r.Parts(), nil
}

// New opens the providers and the spool. It fails when a base URL, the recorded stream (REPLAY_FILE) or the data
// directory cannot be used.
func New(s *service.Service, options Options) (*Researcher, error) {
	r := &Researcher{Service: s, options: options.withDefaults()}
	var err error
	if r.live, err = openLive(s); err != nil {
		return nil, err
	}
	r.replay, err = replay.New(replay.Config{File: s.Config.Replay.File, Delay: s.Config.Replay.Delay, Now: s.Now})
	if err != nil {
		return nil, err
	}
	dir, err := s.Spool("spool")
	if err != nil {
		return nil, err
	}
	r.spool = spool(dir)
	if r.options.Free == nil {
		r.options.Free = r.free
	}
	if r.options.ModelAnswers == nil {
		r.options.ModelAnswers = r.modelAnswers
	}
	r.stuck = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "factstream_threads_stuck", Help: "Threads with a step whose message was lost, at the last sweep.",
	})
	if err := s.Metrics.Registry.Register(r.stuck); err != nil {
		return nil, fmt.Errorf("register the gauge of stuck threads: %w", err)
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Sweep <= 0 {
		o.Sweep = 10 * time.Second
	}
	if o.Janitor <= 0 {
		o.Janitor = time.Hour
	}
	if o.Left <= 0 {
		o.Left = artifact.SafeAge
	}
	if o.MinFree <= 0 {
		o.MinFree = config.LeastFree
	}
	if o.Room <= 0 {
		o.Room = 2 * time.Second
	}
	if o.Settle <= 0 {
		o.Settle = 10 * time.Minute
	}
	return o
}

func openLive(s *service.Service) (provider.Provider, error) {
	client, err := tabstack.New(tabstack.Config{
		BaseURL: s.Config.Tabstack.BaseURL, Offline: s.Config.Offline,
		IdleTimeout: s.Config.IdleTimeout, CallTimeout: s.Config.CallTimeout, Now: s.Now,
	})
	if errors.Is(err, tabstack.ErrOffline) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("TABSTACK_BASE_URL: %w", err)
	}
	return client, nil
}

// Parts are what the researcher does as long as it runs.
func (r *Researcher) Parts() []service.Part {
	runs := worker.New(r.JS, worker.Config{
		Stream: topology.Notebook, Durable: topology.RunsTabstack, Slots: runSlots, AckWait: r.Config.AckWait,
		Deadline: -1, // a run waits for its turn with the message in hand; its call has times of its own
		Grace:    r.options.Grace, OnGiveUp: r.giveUpRun, Logger: r.Log,
	}, r.handleRun)
	autopilot := worker.New(r.JS, worker.Config{
		Stream: topology.Notebook, Durable: topology.Autopilot, Slots: autopilotSlots, AckWait: r.Config.AckWait,
		OnGiveUp: r.giveUpAutopilot, Logger: r.Log,
	}, r.handleAutopilot)
	return []service.Part{
		{Name: event.StageRun, Run: runs.Run},
		{Name: event.StageAutopilot, Run: autopilot.Run},
		{Name: "sweeper", Run: r.sweep},
		{Name: "janitor", Run: r.clearUp},
	}
}

// modelAnswers asks the Ollama that is set now for its models.
func (r *Researcher) modelAnswers(ctx context.Context) error {
	saved, err := r.Settings.Load(ctx)
	if err != nil && !isKeyError(err) {
		return err
	}
	set := saved.Effective(r.Config).Ollama
	engine, err := ollama.New(ollama.Config{Host: set.Host, ChatModel: set.ChatModel, EmbedModel: set.EmbedModel, NumCtx: set.NumCtx})
	if err != nil {
		return err
	}
	defer engine.Close()
	_, err = engine.Info(ctx)
	return err
}

// retriedByItself are the classes of failed stages that pass when the model answers again.
var retriedByItself = map[string]bool{model.ClassAway: true, model.ClassMissing: true}
