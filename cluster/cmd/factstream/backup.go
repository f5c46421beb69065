package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/place"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/backup"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/logging"
)

const backupUsage = `Usage: factstream backup FILE [--with-keys] [--force] [flags of factstream up]

Writes the whole notebook, as it is at this moment, into one zip file; also
while Factstream runs. It finds the notebook as "factstream up" does: --data
(FACTSTREAM_DATA), or NATS_URL.

  --with-keys   put the saved API keys in as well, in clear text
  --force       replace FILE if it is there
`

const restoreUsage = `Usage: factstream restore FILE [--paused] [flags of factstream up]
       factstream restore NOTEBOOK.DB --from-db [--paused]
                          [flags of factstream up]

Puts a backup into an empty place: a new data directory (--data,
FACTSTREAM_DATA), or the server of NATS_URL while it has no notebook and nothing
is connected to it.

  --from-db     restore from a notebook.db alone: every event, and the texts
                that the file holds; what it lacks is named
  --paused      pause every thread that was running, so that nothing is bought
                before you say so
`

const verifyUsage = `Usage: factstream verify [FILE] [flags of factstream up]

Compares the event stream with notebook.db, notebook.db with a fresh fold of the
stream, every artifact with its hash and, when a backup is named, the stream and
the settings with that. Every difference is named; the exit code is 1 when there
is any. Keys are compared when the backup has them, and not shown.
`

// job is one of the commands that look at a notebook from beside.
type job struct {
	cfg            config.Config
	file           string
	log            zerolog.Logger
	stdout, stderr io.Writer
}

// use opens the place of the notebook and what is kept there beside the streams. The caller closes the place.
func (j job) use(ctx context.Context) (p *place.Place, open backup.Place, err error) {
	if p, err = place.Use(ctx, j.cfg, j.log); err != nil {
		return nil, open, err
	}
	if open, err = p.Open(ctx); err != nil {
		p.Close()
		return nil, open, err
	}
	return p, open, nil
}

// runJob reads the command line and runs a job until it is done or Ctrl-C. flags are its own ones, which are true when they are given.
func runJob(name, usage string, args []string, flags map[string]*bool, needsFile bool, stdout, stderr io.Writer, do func(context.Context, job) (int, error)) int {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		flag := flags[strings.TrimLeft(arg, "-")]
		if !strings.HasPrefix(arg, "-") || flag == nil {
			return false
		}
		*flag = true
		return true
	})
	file, cfg, err := parseJob("factstream "+name, args)
	switch {
	case errors.Is(err, config.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitStopped
	case err != nil:
		fmt.Fprintf(stderr, "factstream: the command line is not usable\n%v\n\n%s", err, usage)
		return exitUsage
	case file == "" && needsFile:
		fmt.Fprintf(stderr, "factstream: %s needs a file\n\n%s", name, usage)
		return exitUsage
	}
	if cfg.Data, err = filepath.Abs(cfg.Data); err == nil {
		cfg.KeyFile, err = filepath.Abs(cfg.KeyFile)
	}
	if err != nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitFailed
	}
	ctx, _, stop := signals()
	defer stop()
	log := logging.New("factstream", "error", stderr, logging.NewRedactor(cfg.Secrets()...))
	code, err := do(ctx, job{cfg: cfg, file: file, log: log, stdout: stdout, stderr: stderr})
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before it was done")
		}
		fmt.Fprintf(stderr, "factstream: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		return exitFailed
	}
	return code
}

// parseJob takes the file from the beginning or the end of the arguments.
func parseJob(name string, args []string) (file string, cfg config.Config, err error) {
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	if len(args) > 0 && !isFlag(args[0]) {
		cfg, err = config.Load(args[1:], os.Getenv, name)
		return args[0], cfg, err
	}
	cfg, err = config.Load(args, os.Getenv, name)
	if last := len(args) - 1; err != nil && !errors.Is(err, config.ErrHelp) && last >= 0 && !isFlag(args[last]) {
		if other, otherErr := config.Load(args[:last], os.Getenv, name); otherErr == nil {
			return args[last], other, nil
		}
	}
	return "", cfg, err
}

func runBackup(args []string, stdout, stderr io.Writer) int {
	var withKeys, force bool
	flags := map[string]*bool{"with-keys": &withKeys, "force": &force}
	return runJob("backup", backupUsage, args, flags, true, stdout, stderr, func(ctx context.Context, j job) (int, error) {
		var m backup.Manifest
		var name string
		err := patiently(ctx, lookFor, lookPause, j.stderr, func() error { // a backup is in its place whole or not at all
			p, open, err := j.use(ctx)
			if err != nil {
				return err
			}
			defer p.Close()
			name = p.Name
			m, err = backup.Write(ctx, open, j.file, backup.Options{WithKeys: withKeys, Force: force, Now: time.Now, Progress: progress(j.stderr, "backup")})
			return err
		})
		if errors.Is(err, backup.ErrExists) {
			err = fmt.Errorf("%w; --force replaces it", err)
		}
		if err != nil {
			return exitFailed, err
		}
		fmt.Fprintf(j.stdout, "Backup of %s in %s: %s of %s up to sequence %d, %s (%s), %s of trail.\n", name, j.file, count(m.Counts.Events, "event"),
			count(m.Counts.Threads, "thread"), m.LastSequence, count(m.Counts.Artifacts, "artifact"), size(m.Counts.ArtifactBytes), count(m.Counts.Trail, "event"))
		if m.Keys {
			fmt.Fprintln(j.stdout, "THE FILE HOLDS THE SAVED API KEYS IN CLEAR TEXT: keep it as you would keep them.")
		}
		fmt.Fprintln(j.stdout, "Left out:")
		for _, what := range m.LeftOut {
			fmt.Fprintln(j.stdout, "  "+what)
		}
		warnMissing(j.stderr, m.Missing)
		return exitStopped, nil
	})
}

func warnMissing(to io.Writer, missing []string) {
	if len(missing) > 0 {
		fmt.Fprintf(to, "Missing: %s that events name:\n", count(int64(len(missing)), "artifact"))
	}
	for _, name := range missing {
		fmt.Fprintln(to, "  "+name)
	}
}

func runRestore(args []string, stdout, stderr io.Writer) int {
	var fromDB, paused bool
	flags := map[string]*bool{"from-db": &fromDB, "paused": &paused}
	return runJob("restore", restoreUsage, args, flags, true, stdout, stderr, func(ctx context.Context, j job) (int, error) {
		source, done, err := openSource(ctx, j.file, fromDB)
		if err != nil {
			return exitFailed, err
		}
		defer done()
		p, err := place.Take(ctx, j.cfg, j.log)
		if err != nil {
			return exitFailed, err
		}
		defer p.Close()
		bus := topology.Options{Replicas: p.Replicas(), AckWait: j.cfg.AckWait, LeaseTTL: j.cfg.LeaseTTL}
		if err := backup.Prepare(ctx, p.JS, bus); err != nil {
			return exitFailed, fmt.Errorf("cannot restore into %s: %w", p.Name, err)
		}
		open, err := p.Open(ctx)
		if err != nil {
			return exitFailed, err
		}
		r, err := backup.Restore(ctx, open, source, backup.RestoreOptions{Progress: progress(j.stderr, "restore")})
		if err != nil {
			return exitFailed, fmt.Errorf("%w; what is in %s now is only a part: run the restore again, it begins anew", err, p.Name)
		}
		fmt.Fprintf(j.stdout, "Restored into %s: %s, %s, %s of trail.\n", p.Name, count(r.Events, "event"), count(r.Artifacts, "artifact"), count(r.Trail, "event"))
		if r.Events > 0 {
			fmt.Fprintf(j.stdout, "Their sequences are %d to %d now; the old ones ended at %d.\n", r.First, r.Last, source.LastSequence())
		}
		warnMissing(j.stderr, r.Missing)
		if fromDB {
			fmt.Fprintln(j.stdout, "A notebook.db has no raw answers, no trail, no settings and no keys: those were not restored.")
		}
		if !paused {
			fmt.Fprintln(j.stdout, "Threads that were running go on when it is started.")
			return exitStopped, nil
		}
		n, err := place.PauseAll(ctx, p.JS, "It was restored from a backup with --paused.", j.log)
		if err != nil {
			return exitFailed, fmt.Errorf("everything is restored, but not every thread could be paused: %w", err)
		}
		fmt.Fprintf(j.stdout, "%s paused.\n", count(int64(n), "thread"))
		return exitStopped, nil
	})
}

func openSource(ctx context.Context, path string, fromDB bool) (backup.Source, func(), error) {
	if !fromDB {
		f, err := backup.Open(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		return f, func() { _ = f.Close() }, nil
	}
	h, err := projection.Hold(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return heldSource{h}, func() { _ = h.Close() }, nil
}

// progress writes at most a line in a second or two.
func progress(to io.Writer, name string) func(what string, done, total int64) {
	const every = 2 * time.Second
	last := time.Now()
	return func(what string, done, total int64) {
		if time.Since(last) < every {
			return
		}
		last = time.Now()
		of := ""
		if total > 0 {
			of = fmt.Sprintf(" of %d", total)
		}
		fmt.Fprintf(to, "%s: %s %d%s\n", name, what, done, of)
	}
}

// count is a number of things for people.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// size is a number of bytes for people.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d bytes", bytes)
	}
	value, names := float64(bytes)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(names) > 1 && value >= unit {
		value, names = value/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", value, names[0])
}
