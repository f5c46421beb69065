package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/backup"
)

// verifyTries of a notebook that changes while it is looked at, when differences were found that may come of that.
const verifyTries = 3

func runVerify(args []string, stdout, stderr io.Writer) int {
	return runJob("verify", verifyUsage, args, nil, false, stdout, stderr, func(ctx context.Context, j job) (int, error) {
		var file *backup.File
		if j.file != "" {
			var err error
			if file, err = backup.Open(ctx, j.file); err != nil {
				return exitFailed, err
			}
			defer file.Close() //nolint:errcheck // only read
		}
		v := verification{job: j, file: file}
		if err := patiently(ctx, lookFor, lookPause, j.stderr, func() error { return v.settle(ctx) }); err != nil {
			return exitFailed, err
		}
		return v.say(), nil
	})
}

// verification compares what there is of one notebook.
type verification struct {
	job
	place backup.Place
	file  *backup.File // nil when none was named
	name  string

	stream                       backup.Snapshot
	compared, notes, differences []string
}

// settle looks until nothing differs, or nothing moved meanwhile that it may come of.
func (v *verification) settle(ctx context.Context) error {
	p, open, err := v.use(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	v.place, v.name = open, p.Name
	for try := 1; ; try++ {
		if err := v.look(ctx); err != nil {
			return err
		}
		if len(v.differences) == 0 || try == verifyTries {
			return nil
		}
		if moved, err := v.stream.Moved(ctx); err != nil || !moved {
			return err
		}
	}
}

func (v *verification) look(ctx context.Context) (err error) {
	v.compared, v.notes, v.differences = nil, nil, nil
	db, err := projection.Hold(ctx, filepath.Join(v.cfg.Data, "notebook.db")) // before the stream, which is never behind it
	if errors.Is(err, projection.ErrNoFile) {
		v.notes = append(v.notes, fmt.Sprintf("notebook.db was not compared: %v", err))
	} else if err != nil {
		return err
	} else {
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	if v.stream, err = backup.Look(ctx, v.place.JS); err != nil {
		return err
	}
	if err := v.artifacts(ctx); err != nil {
		return err
	}
	if db != nil {
		if err := v.projection(ctx, db); err != nil {
			return err
		}
	}
	if v.file != nil {
		return v.backup(ctx)
	}
	return nil
}

func (v *verification) take(r backup.Report) {
	v.notes = append(v.notes, r.Notes...)
	v.differences = append(v.differences, r.Differences...)
}

func (v *verification) artifacts(ctx context.Context) error {
	tell := progress(v.stderr, "verify")
	r, err := v.stream.CheckArtifacts(ctx, v.place.Artifacts, func(done int64) { tell("artifacts", done, 0) })
	if err != nil {
		return err
	}
	v.compared = append(v.compared, fmt.Sprintf("artifacts    %d, each read and hashed", r.Compared))
	v.take(r)
	return nil
}

// projection compares notebook.db with the stream, and its rows with those that the stream's messages give.
func (v *verification) projection(ctx context.Context, db *projection.Held) error {
	switch {
	case !db.Created().Equal(v.stream.Created):
		v.notes = append(v.notes, "notebook.db was not compared: it is of another stream, and the gateway makes it again when it starts")
		return nil
	case db.Position() > v.stream.LastSeq:
		v.differences = append(v.differences, fmt.Sprintf("the stream ends at %d, notebook.db at %d: the stream has lost its end", v.stream.LastSeq, db.Position()))
	}
	r, err := v.stream.Compare(ctx, backup.Copy{
		Name: "notebook.db", Has: func(m projector.Message) bool { return m.Seq <= db.Position() }, Messages: db.Messages,
	})
	if err != nil {
		return err
	}
	v.take(r)
	dir, err := os.MkdirTemp("", "factstream-verify-")
	if err != nil {
		return fmt.Errorf("make a place for a fresh fold: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	fresh := filepath.Join(dir, "notebook.db")
	err = projection.Fold(ctx, fresh, v.stream.Created, func(do func([]projector.Message) error) error {
		return v.stream.Each(ctx, db.Position(), do)
	})
	if err != nil {
		return err
	}
	rows, err := db.Differences(ctx, fresh)
	if err != nil {
		return err
	}
	v.differences = append(v.differences, rows...)
	v.compared = append(v.compared, fmt.Sprintf("notebook.db  %d events up to %d, and every row with a fresh fold", r.Compared, db.Position()))
	return nil
}

func (v *verification) backup(ctx context.Context) error {
	m := v.file.Manifest()
	r, err := v.stream.Compare(ctx, v.file.Copy("the backup"))
	if err != nil {
		return err
	}
	v.take(r)
	names, err := v.stream.CompareNames(ctx, v.place.Artifacts, v.file)
	if err != nil {
		return err
	}
	v.take(names)
	saved, err := v.stream.CompareSettings(ctx, v.place.Settings, v.file)
	if err != nil {
		return err
	}
	v.take(saved)
	v.compared = append(v.compared, fmt.Sprintf("backup       %d events and the settings of %s, made %s", r.Compared, v.job.file, m.Created.Format("2006-01-02 15:04:05 MST")))
	return nil
}

// say prints what was found and gives the exit code.
func (v *verification) say() int {
	fmt.Fprintf(v.stdout, "Compared in %s, whose stream ends at %d:\n", v.name, v.stream.LastSeq)
	for _, line := range v.compared {
		fmt.Fprintln(v.stdout, "  "+line)
	}
	for _, line := range v.notes {
		fmt.Fprintln(v.stdout, "Note: "+line)
	}
	for _, line := range v.differences {
		fmt.Fprintln(v.stdout, "Different: "+line)
	}
	if len(v.differences) > 0 {
		fmt.Fprintf(v.stdout, "%s.\n", count(int64(len(v.differences)), "difference"))
		return exitFailed
	}
	fmt.Fprintln(v.stdout, "No differences.")
	return exitStopped
}
