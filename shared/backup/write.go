package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/settings"
)

// Options of a backup.
type Options struct {
	WithKeys bool // put the saved API keys in, in clear text
	Force    bool // replace a file that is there
	Now      func() time.Time
	// Progress is told from time to time what was done of what; total is 0 when it is not known. It may be nil.
	Progress func(what string, done, total int64)
}

var (
	// ErrExists: there is a file of that name, and nobody asked to replace it.
	ErrExists = errors.New("the file exists")
	// ErrKeys: keys were asked for, but a saved one cannot be read.
	ErrKeys = errors.New("a saved API key cannot be read")
	// ErrRestless: threads or runs were deleted during each of several tries.
	ErrRestless = errors.New("something was deleted during the backup, each time it was tried")
)

// tries of a snapshot during which nothing is deleted.
const tries = 5

// Write copies the notebook, as it is at the stream's last sequence of this moment, into a new file at path, while it is in use. The file has mode
// 0600 and appears whole or not at all. Errors: ErrExists, ErrKeys, ErrRestless, or what the bus or the disk says.
func Write(ctx context.Context, place Place, path string, opts Options) (m Manifest, err error) {
	if err := absent(path, opts.Force); err != nil {
		return m, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return m, fmt.Errorf("make the file of the backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignore(tmp.Close(), os.ErrClosed), ignore(os.Remove(tmp.Name()), fs.ErrNotExist))
		}
	}()
	for try := 0; ; try++ {
		if try == tries {
			return m, ErrRestless
		}
		if _, err := tmp.Seek(0, io.SeekStart); err != nil {
			return m, fmt.Errorf("write the backup: %w", err)
		}
		if err := tmp.Truncate(0); err != nil {
			return m, fmt.Errorf("write the backup: %w", err)
		}
		var whole bool
		if m, whole, err = writeOnce(ctx, place, tmp, opts); err != nil {
			return m, err
		}
		if whole {
			break
		}
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	if err := absent(path, opts.Force); err != nil {
		return m, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, syncDir(filepath.Dir(path))
}

func absent(path string, force bool) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for %s: %w", path, err)
	case !force:
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return nil
}

func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// writeOnce writes one snapshot. whole is false when something was deleted meanwhile: what was read may then lack what the position has.
func writeOnce(ctx context.Context, place Place, to io.Writer, opts Options) (m Manifest, whole bool, err error) {
	stream, err := place.JS.Stream(ctx, topology.Notebook)
	if err != nil {
		return m, false, fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	before, err := readDeletions(ctx, stream)
	if err != nil {
		return m, false, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return m, false, fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	w := &writer{
		ctx: ctx, place: place, opts: opts, deleted: before, zip: zip.NewWriter(to),
		wanted: newWanted(before.runs), threads: map[string]bool{}, attempts: map[string]string{},
		m: Manifest{
			Format: Format, Version: Version, Created: opts.Now().UTC(), StreamCreated: info.Created.UTC(), LastSequence: info.State.LastSeq,
			LeftOut: slices.Clone(leftOut),
		},
	}
	if _, unfinished := info.Config.Metadata[topology.MetaUnfinished]; unfinished {
		return m, false, topology.ErrUnfinishedRestore
	}
	w.total = int64(info.State.Msgs)
	for _, step := range []func() error{w.readme, w.notebook, w.names, w.artifacts, w.trail, w.settings} {
		if err := step(); err != nil {
			return m, false, err
		}
	}
	after, err := readDeletions(ctx, stream)
	if err != nil || before.newer(after) {
		return m, false, err
	}
	return w.m, true, w.finish()
}

// writer is one snapshot under way.
type writer struct {
	ctx     context.Context
	place   Place
	opts    Options
	deleted deletions
	zip     *zip.Writer
	m       Manifest
	total   int64 // messages of the stream

	wanted   *wanted
	threads  map[string]bool
	attempts map[string]string // runs that were tried, to their thread
}

func (w *writer) tell(what string, done, total int64) {
	if w.opts.Progress != nil {
		w.opts.Progress(what, done, total)
	}
}

// member writes one file of the archive and notes it in the manifest.
func (w *writer) member(name string, write func(io.Writer) error) error {
	into, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.m.Created})
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	counted := &hashed{into: into, sum: sha256.New()}
	if err := write(counted); err != nil {
		return err
	}
	w.m.Members = append(w.m.Members, Member{Name: name, Size: counted.size, SHA256: counted.hex()})
	return nil
}

// hashed counts and hashes what is written.
type hashed struct {
	into io.Writer
	sum  hash.Hash
	size int64
}

func (h *hashed) Write(p []byte) (int, error) {
	n, err := h.into.Write(p)
	h.sum.Write(p[:n])
	h.size += int64(n)
	if err != nil {
		err = fmt.Errorf("write the backup: %w", err)
	}
	return n, err
}

func (h *hashed) hex() string { return hex.EncodeToString(h.sum.Sum(nil)) }

func (w *writer) readme() error {
	return w.member(memberReadme, func(to io.Writer) error {
		_, err := io.WriteString(to, readme)
		return err
	})
}

func (w *writer) notebook() error {
	return w.member(memberNotebook, func(to io.Writer) error {
		lines := newLines(to)
		return Each(w.ctx, w.place.JS, topology.Notebook, w.m.LastSequence, func(messages []projector.Message) error {
			for _, m := range messages {
				if w.deleted.gone(m) {
					continue
				}
				if err := lines.Encode(lineOf(m)); err != nil {
					return err
				}
				w.note(m)
			}
			w.tell("events", w.m.Counts.Events, w.total)
			return nil
		})
	})
}

func newLines(to io.Writer) *json.Encoder {
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	return lines
}

// note remembers what of an event is elsewhere.
func (w *writer) note(m projector.Message) {
	w.m.Counts.Events++
	thread, id := threadOf(m.Subject), entityOf(m.Subject)
	if !w.threads[thread] && thread != topology.NoThread {
		w.threads[thread] = true
		w.m.Counts.Threads++
		if w.deleted.threads[thread] > 0 {
			w.m.Counts.Deleted++
		}
	}
	if strings.HasPrefix(m.Subject, "attempt.") {
		w.attempts[id] = thread
	}
	w.wanted.add(m)
}

// names keeps the names of the attempts that are in the backup: the raw answer of one that failed, or is not settled yet, stands in no event.
func (w *writer) names() error {
	names, err := w.place.Artifacts.Names(w.ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b artifact.Naming) int { return strings.Compare(a.Thread+"/"+a.Name, b.Thread+"/"+b.Name) })
	return w.member(memberNames, func(to io.Writer) error {
		lines := newLines(to)
		for _, n := range names {
			run := n.Name[:strings.LastIndexByte(n.Name, '.')]
			if w.attempts[run] != n.Thread || w.deleted.runs[run] || !n.Ref.Valid(n.Thread) {
				continue
			}
			if err := lines.Encode(n); err != nil {
				return err
			}
			w.wanted.keep(n.Ref)
			w.m.Counts.Names++
		}
		return nil
	})
}

func (w *writer) artifacts() error {
	refs := w.wanted.refs()
	for _, ref := range refs {
		name := ref.Ref
		content, err := w.place.Artifacts.Reader(w.ctx, ref)
		if errors.Is(err, artifact.ErrMissing) || errors.Is(err, artifact.ErrCorrupt) {
			w.m.Missing = append(w.m.Missing, name)
			continue
		}
		if err != nil {
			return err
		}
		err = w.member(memberArtifacts+name, func(to io.Writer) error {
			_, err := io.Copy(to, content)
			return err
		})
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("copy artifact %s: %w", name, err)
		}
		w.m.Counts.Artifacts++
		w.m.Counts.ArtifactBytes += ref.Size
		w.tell("artifacts", w.m.Counts.Artifacts, int64(len(refs)))
	}
	return nil
}

// trail copies what is there of the threads and runs that are in the backup.
func (w *writer) trail() error {
	stream, err := w.place.JS.Stream(w.ctx, topology.Trail)
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Trail, err)
	}
	state := stream.CachedInfo().State
	return w.member(memberTrail, func(to io.Writer) error {
		if state.Msgs == 0 {
			return nil
		}
		lines := newLines(to)
		return Each(w.ctx, w.place.JS, topology.Trail, state.LastSeq, func(messages []projector.Message) error {
			for _, m := range messages {
				tokens := strings.Split(m.Subject, ".")
				if len(tokens) != 4 || w.attempts[tokens[2]] != tokens[1] || w.deleted.runs[tokens[2]] || w.deleted.threads[tokens[1]] > 0 {
					continue
				}
				if err := lines.Encode(lineOf(m)); err != nil {
					return err
				}
				w.m.Counts.Trail++
			}
			return nil
		})
	})
}

func (w *writer) settings() error {
	saved, err := w.place.Settings.Load(w.ctx)
	var key *settings.KeyError
	switch {
	case errors.As(err, &key) && w.opts.WithKeys:
		return fmt.Errorf("%w: %w", ErrKeys, err)
	case err != nil && key == nil:
		return err
	}
	if err := w.json(memberSettings, settingsOf(saved)); err != nil {
		return err
	}
	if !w.opts.WithKeys {
		w.m.LeftOut = append([]string{leftOutKeys}, w.m.LeftOut...)
		return nil
	}
	w.m.Keys = true
	return w.json(memberKeys, keysOf(saved))
}

func (w *writer) json(name string, value any) error {
	return w.member(name, func(to io.Writer) error {
		body, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		_, err = to.Write(append(body, '\n'))
		return err
	})
}

// finish writes the manifest, which does not name itself, and ends the archive.
func (w *writer) finish() error {
	body, err := json.MarshalIndent(w.m, "", "  ")
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	into, err := w.zip.CreateHeader(&zip.FileHeader{Name: memberManifest, Method: zip.Deflate, Modified: w.m.Created})
	if err == nil {
		_, err = into.Write(append(body, '\n'))
	}
	if err == nil {
		err = w.zip.Close()
	}
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}
