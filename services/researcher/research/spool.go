package research

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/text"
)

// spool is the directory where the bytes of calls are kept as they arrive, one file for each attempt of a run. The name
// says whose it is, so that the content is what the provider sent and nothing else. What is there survives the process.
type spool string

// attempt names one attempt of a run.
type attempt struct {
	thread, run string
	n           int
}

const (
	spoolSuffix = ".raw"
	// syncEvery is how often an answer that is still arriving is put on the disk for good: a crash of the machine, not of
	// the process, costs the bytes of so long.
	syncEvery = time.Second
)

func (a attempt) file() string {
	return a.thread + "." + a.run + "." + strconv.Itoa(a.n) + spoolSuffix
}

func parseSpooled(name string) (attempt, bool) {
	parts := strings.Split(strings.TrimSuffix(name, spoolSuffix), ".")
	if !strings.HasSuffix(name, spoolSuffix) || len(parts) != 3 {
		return attempt{}, false
	}
	n, err := strconv.Atoi(parts[2])
	return attempt{parts[0], parts[1], n}, err == nil && n > 0 && text.ValidToken(parts[0]) && text.ValidToken(parts[1])
}

// create begins the file of an attempt. When the disk refuses it, the answer is held in memory alone, which is said in
// the error; what is returned can be used all the same. What was paid for is put on the disk for good; a replay, which a crash of
// the machine only makes to be played again, is not.
func (s spool) create(a attempt, now func() time.Time, paid bool) (*spooled, error) {
	f := &spooled{path: filepath.Join(string(s), a.file()), now: now, synced: now(), paid: paid}
	var err error
	if f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600); err != nil {
		return f, fmt.Errorf("begin a file in the spool: %w", err)
	}
	if !paid {
		return f, nil
	}
	return f, syncDir(string(s))
}

// open reads what an earlier process kept of an attempt; fs.ErrNotExist when there is nothing.
func (s spool) open(a attempt) (*spooled, error) {
	path := filepath.Join(string(s), a.file())
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &spooled{path: path, file: file, size: info.Size()}, nil
}

// list gives the attempts of which there is a file.
func (s spool) list() ([]attempt, error) {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	var found []attempt
	for _, e := range entries {
		if a, ok := parseSpooled(e.Name()); ok {
			found = append(found, a)
		}
	}
	return found, nil
}

// remove deletes the files of a run.
func (s spool) remove(thread, run string) error {
	found, err := s.list()
	for _, a := range found {
		if a.thread == thread && a.run == run {
			err = errors.Join(err, s.removeAttempt(a))
		}
	}
	return err
}

// age is how long ago the file of an attempt was written last; 0 when there is none.
func (s spool) age(a attempt, now time.Time) time.Duration {
	info, err := os.Stat(filepath.Join(string(s), a.file()))
	if err != nil {
		return 0
	}
	return now.Sub(info.ModTime())
}

func (s spool) removeAttempt(a attempt) error {
	if err := os.Remove(filepath.Join(string(s), a.file())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove from the spool: %w", err)
	}
	return nil
}

// spooled is the answer of one attempt: the bytes of its file, then those that the disk did not take any more. A disk
// that is full in the middle of a call does not end it, since the call is paid.
type spooled struct {
	path   string
	file   *os.File // nil: all is in memory
	size   int64    // bytes in the file
	memory bytes.Buffer
	broken error // why the file takes no more
	now    func() time.Time
	synced time.Time
	paid   bool // it is put on the disk for good
}

// write keeps p. It never fails: what the file does not take stays in memory.
func (f *spooled) write(p []byte) {
	if f.file == nil || f.broken != nil {
		f.memory.Write(p)
		return
	}
	n, err := f.file.WriteAt(p, f.size)
	f.size += int64(n)
	if err != nil {
		f.broken = err
		f.memory.Write(p[n:])
		return
	}
	if now := f.now(); f.paid && now.Sub(f.synced) >= syncEvery {
		f.synced = now
		_ = f.file.Sync() // once more at the end, and there its error counts
	}
}

// finish puts the file on the disk for good, if it was paid for. It fails when a part of the answer is in memory only.
func (f *spooled) finish() error {
	if f.broken != nil {
		return fmt.Errorf("spool: the rest of the answer is in memory only: %w", f.broken)
	}
	if f.file == nil || !f.paid {
		return nil
	}
	return f.file.Sync()
}

func (f *spooled) empty() bool { return f.size == 0 && f.memory.Len() == 0 }

// content reads the answer from its beginning.
func (f *spooled) content() io.Reader {
	rest := bytes.NewReader(f.memory.Bytes())
	if f.file == nil {
		return rest
	}
	return io.MultiReader(io.NewSectionReader(f.file, 0, f.size), rest)
}

// keep implements raw. Content and name, if there is to be one, go at the same time: the answer is found when both are there. A name may
// be left without its content when that fails: whoever looks finds nothing.
func (f *spooled) keep(ctx context.Context, store *artifact.Store, thread, name string, known func(artifact.Ref) bool) (artifact.Ref, error) {
	ref, err := artifact.RefOf(thread, f.content())
	if err != nil {
		return ref, err
	}
	put := store.PutNew
	if known(ref) {
		put = store.PutAs
	}
	var both errgroup.Group // each ends by its own time: content that is broken off would leave pieces that nobody owns
	both.Go(func() error { return put(ctx, ref, f.content()) })
	if name != "" {
		both.Go(func() error { return store.Name(ctx, thread, name, ref) })
	}
	return ref, both.Wait()
}

func (f *spooled) close() {
	if f.file != nil {
		_ = f.file.Close() // synced by finish, or only read
	}
}

// raw is an answer as the provider sent it: in the spool, or kept as an artifact already.
type raw interface {
	// keep keeps it as an artifact that has the name; an empty one is none. What is known is kept already, perhaps; anything else is put without a look.
	keep(ctx context.Context, store *artifact.Store, thread, name string, known func(artifact.Ref) bool) (artifact.Ref, error)
}

// keptRaw is an answer that another process has saved.
type keptRaw artifact.Ref

func (k keptRaw) keep(context.Context, *artifact.Store, string, string, func(artifact.Ref) bool) (artifact.Ref, error) {
	return artifact.Ref(k), nil
}

// syncDir makes a new name in a directory survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
