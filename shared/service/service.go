// Package service is one process of the notebook: what all five have in common, opened in one place and closed in order.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/lease"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/footprint"
	"github.com/factstream/factstream/shared/lifeline"
	"github.com/factstream/factstream/shared/logging"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/telemetry"
)

// Service is an open process. Its fields are ready to use from Open to Close.
type Service struct {
	Config    config.Config
	Log       zerolog.Logger
	Redactor  *logging.Redactor
	Now       func() time.Time
	NC        *nats.Conn
	JS        jetstream.JetStream
	Tail      *notebook.Tail
	Appender  *notebook.Appender
	Artifacts *artifact.Store
	Progress  *progress.Board
	Settings  *settings.Store
	Leases    *lease.Leases
	Metrics   *telemetry.Metrics
	Holder    string // names this process in claims: service, host and process id
}

// Part is something that runs as long as the service does. It ends with nil when ctx ends; an error ends the whole service.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Open connects, declares the topology and opens what every service uses. The tail stands still until Run.
func Open(ctx context.Context, cfg config.Config, log zerolog.Logger, redactor *logging.Redactor) (*Service, error) {
	nc, js, err := connect.Dial(ctx, connect.Config{URL: cfg.NATS.URL.Reveal(), Name: cfg.Service, Logger: log})
	if err != nil {
		return nil, err
	}
	s := &Service{
		Config: cfg, Log: log, Redactor: redactor, Now: time.Now, NC: nc, JS: js,
		Metrics: telemetry.NewMetrics(cfg.Service), Holder: holder(cfg.Service),
	}
	if err := s.open(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return s, nil
}

func (s *Service) open(ctx context.Context) (err error) {
	opts := topology.Options{Replicas: s.Config.NATS.Replicas, AckWait: s.Config.AckWait, LeaseTTL: s.Config.LeaseTTL}
	if err := topology.Declare(ctx, s.JS, opts); err != nil {
		return fmt.Errorf("declare the bus: %w", err)
	}
	s.Tail = notebook.NewTail(s.JS, s.Log)
	s.Appender = notebook.NewAppender(s.JS, s.Tail, s.Now)
	if s.Artifacts, err = artifact.Open(ctx, s.JS); err != nil {
		return err
	}
	if s.Progress, err = progress.Open(ctx, s.JS, s.Now); err != nil {
		return err
	}
	if s.Settings, err = settings.Open(ctx, s.JS, s.Config); err != nil {
		return err
	}
	leases, err := s.JS.KeyValue(ctx, topology.BucketLeases)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", topology.BucketLeases, err)
	}
	s.Leases = lease.New(leases, lease.Config{TTL: s.Config.LeaseTTL, Name: s.Holder, Logger: s.Log})
	return nil
}

func holder(service string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return service + "@" + host + ":" + strconv.Itoa(os.Getpid())
}

// Run folds the stream and runs the parts until ctx ends or one of them fails. The tail goes on until the last part has ended: what they have in hand is
// still brought to its end, and every append may have to catch up.
func (s *Service) Run(ctx context.Context, parts ...Part) error {
	folding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	run := func(ctx context.Context, part Part) error {
		if err := part.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
		return nil
	}
	group.Go(func() error { return run(folding, Part{Name: "tail", Run: s.Tail.Run}) })
	var working sync.WaitGroup
	for _, part := range parts {
		working.Add(1)
		group.Go(func() error {
			defer working.Done()
			return run(ctx, part)
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		working.Wait()
		stop()
		return nil
	})
	return group.Wait()
}

// Close ends the connection to the bus.
func (s *Service) Close() { s.NC.Close() }

// Spool is the directory for files that must survive a crash of this process; it is made when it is not there.
func (s *Service) Spool(name string) (string, error) {
	dir := filepath.Join(s.Config.Data, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory %s: %w", dir, err)
	}
	return dir, nil
}

// Shares of the processors.
const (
	Worker = 4 // does one step at a time, and there are four of them
	Whole  = 1 // the gateway, which steps back when it has read the stream
)

// Main is a whole process: configuration, signals, Open, the parts, Close. It gives the exit code; its last line on failure says what to do.
// With fault.Flag among its arguments it prints its fault points instead. It takes the part of the processors that share says (footprint.Take).
func Main(name string, share int, parts func(context.Context, *Service) ([]Part, error)) int {
	if fault.Asked(os.Args[1:]) {
		if err := fault.Print(os.Stdout); err != nil {
			return 1
		}
		return 0
	}
	cfg := config.LoadOrExit(name)
	footprint.Take(share)
	log, redactor := logging.ForProcess(cfg)
	ctx, stop := lifeline.Context(context.Background())
	defer stop()
	if err := run(ctx, cfg, log, redactor, parts); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return 0
		}
		log.Error().Err(err).Msg("stopped")
		return 1
	}
	return 0
}

func run(ctx context.Context, cfg config.Config, log zerolog.Logger, redactor *logging.Redactor, parts func(context.Context, *Service) ([]Part, error)) error {
	if err := fault.Check(); err != nil {
		return err
	}
	if !cfg.NATS.URL.Set() {
		return errors.New("NATS_URL is not set: this service needs a bus; `make up` starts one with all services")
	}
	s, err := Open(ctx, cfg, log, redactor)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := parts(ctx, s)
	if err != nil {
		return err
	}
	log.Info().Str("holder", s.Holder).Msg("started")
	return s.Run(ctx, all...)
}
