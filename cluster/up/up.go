// Package up runs a whole notebook on one machine: the bus in this process, unless one is given, and the five services
// as processes of their own below it. Or, to outlive the loss of any one process, three servers of the bus and two of each
// service.
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/logfile"
	"github.com/factstream/factstream/cluster/supervisor"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/lifeline"
	"github.com/factstream/factstream/shared/logging"
)

// Services are the programs that are run, by the order in which they are stopped from the last group to the first: the
// gateway takes in nothing more before the workers finish, and the bus, which all of them need, goes after them.
var Services = [][]string{{"researcher", "distiller", "judge", "briefer"}, {"gateway"}}

// Options say what is run and where it shows.
type Options struct {
	Config  config.Config
	Bin     string   // directory of the services' programs
	Environ []string // of this process; the services inherit what is not configuration
	Verbose bool     // show every log line, not only warnings and errors
	Out     io.Writer
	Err     io.Writer
	// Hurry, when it closes, ends at once what is still stopping.
	Hurry <-chan struct{}
	// Times of the supervisor; zero values mean its defaults.
	Times supervisor.Options
}

// memoryLimit is the soft limit of this process, which holds the bus: its caches would else grow with the store.
const memoryLimit = 256 << 20

// Run starts everything, prints where it is once it is ready, and keeps it running until ctx ends; then it stops
// everything in order and returns nil. An error is why nothing was started, in one line that says what to do.
func Run(ctx context.Context, opts Options) error {
	s, err := begin(opts)
	if err != nil {
		return err
	}
	defer s.out.close()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	bus, err := openBus(ctx, s.cfg, s.log)
	if err != nil {
		return err
	}
	defer bus.close()
	if s.cfg.HTTP, err = freeAddress(s.cfg.HTTP); err != nil {
		return err
	}
	env := environment(s.cfg, bus, opts.Environ)
	var groups [][]process
	for _, names := range Services {
		var group []process
		for _, name := range names {
			group = append(group, process{name, name, env})
		}
		groups = append(groups, group)
	}
	return s.serve(ctx, bus, groups)
}

// start is what is known and open before the bus is.
type start struct {
	Options
	cfg      config.Config // with absolute paths
	programs map[string]string
	out      *output
	log      zerolog.Logger
}

// begin checks the ground and opens the logs.
func begin(opts Options) (*start, error) {
	cfg, err := absolute(opts.Config)
	if err != nil {
		return nil, err
	}
	programs, err := find(opts.Bin)
	if err != nil {
		return nil, err
	}
	if err := prepare(cfg.Data); err != nil {
		return nil, err
	}
	if err := recording(cfg.Replay.File); err != nil {
		return nil, err
	}
	out := newOutput(opts, cfg)
	log, err := out.logger(cfg)
	if err != nil {
		out.close()
		return nil, err
	}
	return &start{opts, cfg, programs, out, log}, nil
}

// process is one process of a service.
type process struct {
	name    string // among all processes
	program string
	env     []string
}

// serve keeps the services running on an open bus until ctx ends; others are the addresses of further gateways.
func (s *start) serve(ctx context.Context, bus *bus, groups [][]process, others ...string) error {
	s.out.redactor.Add(bus.secrets()...)
	specs, err := s.specs(groups)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Run(ctx, specs, s.times())
	}()
	greet(ctx, s.Out, s.cfg, bus, s.log, others)
	<-done
	fmt.Fprintln(s.Out, "Factstream has stopped. Everything is kept in", s.cfg.Data)
	return nil
}

// times are those of every supervisor of this process.
func (s *start) times() supervisor.Options {
	times := s.Times
	times.Hurry = s.Hurry
	times.Tell = func(e supervisor.Event) { tell(s.log, s.out, e) }
	return times
}

// ErrNoProgram: the programs were not built, or not all into one directory.
var ErrNoProgram = errors.New("a program is missing")

// absolute makes the paths independent of the directory that a process works in.
func absolute(cfg config.Config) (config.Config, error) {
	for _, path := range []*string{&cfg.Data, &cfg.KeyFile, &cfg.Replay.File} {
		if *path == "" {
			continue
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return cfg, fmt.Errorf("find %s: %w", *path, err)
		}
		*path = full
	}
	return cfg, nil
}

// find returns the path of each service's program in dir.
func find(dir string) (map[string]string, error) {
	programs := map[string]string{}
	var missing []string
	for _, name := range slices.Concat(Services...) {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			missing = append(missing, name)
		}
		programs[name] = path
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s not found in %s; run `make build`", ErrNoProgram, strings.Join(missing, ", "), dir)
	}
	return programs, nil
}

// environment is what the services are told. Passwords go this way, never by arguments, which all users can read.
func environment(cfg config.Config, bus *bus, from []string) []string {
	cfg.NATS.URL = bus.url
	return append(append(inherited(from), cfg.Environ()...), lifeline.Variable+"="+lifeline.Stdin)
}

// inherited is what processes take over of an environment: what is not configuration.
func inherited(environ []string) (env []string) {
	own := append(config.Variables(), lifeline.Variable)
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(own, name) {
			env = append(env, pair)
		}
	}
	return env
}

func (s *start) specs(groups [][]process) ([][]supervisor.Spec, error) {
	specs := make([][]supervisor.Spec, len(groups))
	for i, group := range groups {
		for _, p := range group {
			writer, err := s.out.service(p.name)
			if err != nil {
				return nil, err
			}
			specs[i] = append(specs[i], supervisor.Spec{
				Name: p.name, Path: s.programs[p.program], Env: p.env, Output: writer,
				Again: []string{"ON_RESTART=continue"}, // a crash is no start of the whole
			})
		}
	}
	return specs, nil
}

// tell logs what happened to a service. That one ended by itself is for a person to know.
func tell(log zerolog.Logger, out *output, e supervisor.Event) {
	if e.Kind != supervisor.Started {
		out.flush(e.Name)
	}
	switch e.Kind {
	case supervisor.Started:
		log.Info().Str("program", e.Name).Int("pid", e.PID).Msg("started")
	case supervisor.Ended:
		log.Warn().Str("program", e.Name).Int("pid", e.PID).AnErr("how", e.Err).Stringer("again_in", e.Wait).Msg("a service ended by itself and is started again")
	case supervisor.StartError:
		log.Error().Str("program", e.Name).Err(e.Err).Stringer("again_in", e.Wait).Msg("a service cannot be started, trying again")
	case supervisor.Killed:
		log.Warn().Str("program", e.Name).Int("pid", e.PID).Msg("a service did not stop in time and was ended")
	case supervisor.Stopped:
		log.Info().Str("program", e.Name).Int("pid", e.PID).AnErr("how", e.Err).Msg("stopped")
	}
}

// output sends what each process says to a log file of its own, and what a person should see to the terminal.
type output struct {
	dir      string
	redactor *logging.Redactor
	terminal *logfile.Terminal
	files    []*logfile.File
	lines    map[string]*logfile.Lines
}

func newOutput(opts Options, cfg config.Config) *output {
	least := zerolog.WarnLevel
	if opts.Verbose {
		least = zerolog.TraceLevel
	}
	redactor := logging.NewRedactor(cfg.Secrets()...)
	file, ok := opts.Err.(*os.File)
	return &output{
		dir: LogDir(cfg.Data), redactor: redactor, lines: map[string]*logfile.Lines{},
		terminal: logfile.NewTerminal(redactor.Writer(opts.Err), least, ok && isatty.IsTerminal(file.Fd())),
	}
}

// LogDir is the directory of the logs, <service>.log each, below a data directory.
func LogDir(data string) string { return filepath.Join(data, "logs") }

// service returns the writer for what the service says.
func (o *output) service(name string) (io.Writer, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the logs: %w", err)
	}
	file, err := logfile.Open(filepath.Join(o.dir, name+".log"), 0)
	if err != nil {
		return nil, err
	}
	o.files = append(o.files, file)
	safe := o.redactor.Writer(file)
	o.lines[name] = &logfile.Lines{Each: func(line []byte) {
		_, _ = safe.Write(line)
		o.terminal.Show(name, line)
	}}
	return o.lines[name], nil
}

// logger returns the logger of this process, which holds the bus too.
func (o *output) logger(cfg config.Config) (zerolog.Logger, error) {
	writer, err := o.service("factstream")
	if err != nil {
		return zerolog.Nop(), err
	}
	return logging.New("factstream", cfg.LogLevel, writer, o.redactor), nil
}

// flush passes on the last words of a service that has ended.
func (o *output) flush(name string) { o.lines[name].Flush() }

func (o *output) close() {
	for _, file := range o.files {
		_ = file.Close()
	}
}

// readyWithin is when a person is told what is missing; the waiting goes on.
const readyWithin = 20 * time.Second
