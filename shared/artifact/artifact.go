// Package artifact keeps what is too bulky for an event: reports, page texts, a provider's raw answer. Content is
// addressed by its SHA-256 within its thread, so that putting the same bytes twice keeps them once, and deleting a
// thread can find everything that is its own.
package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/factstream/factstream/jetstream/topology"
)

// Ref names an artifact. It stands in events in place of the content.
type Ref struct {
	Ref    string `json:"ref"`    // <thread>/<sha256>
	SHA256 string `json:"sha256"` // 64 hexadecimal digits, lower case
	Size   int64  `json:"size"`   // bytes
}

var (
	// ErrMissing: there is no such artifact (any more).
	ErrMissing = errors.New("artifact is missing")
	// ErrCorrupt: what is kept is not what was put.
	ErrCorrupt = errors.New("artifact is corrupt")
	// ErrBadRef: the reference is not one that Put returned, or the thread cannot be part of one.
	ErrBadRef = errors.New("artifact reference is malformed")
	// ErrChanged: the content is not what it was said to be, or changed while it was being kept; nothing was.
	ErrChanged = errors.New("content is not what was to be kept")
)

// Store keeps artifacts in the object store of the bus. It may be used by several goroutines and processes.
type Store struct {
	js      jetstream.JetStream
	objects jetstream.ObjectStore
	stream  jetstream.Stream // behind the object store, to see whether content is whole

	mu   sync.Mutex
	busy map[string]chan struct{} // objects that this process puts or deletes; closed at the end of that
}

// What is asked of the store ends after this time, and for content longer by its size at this rate, in bytes a second, also when
// the caller could wait longer: servers that elect a leader leave some requests unanswered, and asking again helps. The library's
// own time is 5 s for a whole object. Nothing takes longer than longestTime, which is more than an answer of 256 MiB needs: pieces that
// have no name for longer belong to nobody (SafeAge).
const (
	requestTime = 5 * time.Second
	slowestRate = 1 << 20
	longestTime = 30 * time.Minute
)

// putsAtOnce of many contents are on their way together: each waits for three answers, of which two come after a sync to disk.
const putsAtOnce = 8

// objectStream is the stream behind the object store, as every client of NATS names it.
const objectStream = "OBJ_" + topology.StoreArtifacts

// Open opens the store that topology.Declare made.
func Open(ctx context.Context, js jetstream.JetStream) (*Store, error) {
	objects, err := js.ObjectStore(ctx, topology.StoreArtifacts)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", topology.StoreArtifacts, err)
	}
	stream, err := js.Stream(ctx, objectStream)
	if err != nil {
		return nil, fmt.Errorf("open the stream of the object store %s: %w", topology.StoreArtifacts, err)
	}
	return &Store{js: js, objects: objects, stream: stream, busy: map[string]chan struct{}{}}, nil
}

// Put keeps content for thread, unless it is kept already.
func (s *Store) Put(ctx context.Context, thread string, content []byte) (Ref, error) {
	sum := sha256.Sum256(content)
	ref, err := newRef(thread, hex.EncodeToString(sum[:]), int64(len(content)))
	if err != nil {
		return Ref{}, err
	}
	return s.put(ctx, ref, bytes.NewReader(content))
}

// PutAll is Put for many contents, several at a time and equal ones once. The references are in the order of contents. At the first
// error the others end too; what was kept until then stays.
func (s *Store) PutAll(ctx context.Context, thread string, contents []string) ([]Ref, error) {
	kept := map[string]*Ref{}
	puts, ctx := errgroup.WithContext(ctx)
	puts.SetLimit(putsAtOnce)
	for _, content := range contents {
		if kept[content] != nil {
			continue
		}
		ref := new(Ref)
		kept[content] = ref
		puts.Go(func() (err error) {
			*ref, err = s.Put(ctx, thread, []byte(content))
			return err
		})
	}
	if err := puts.Wait(); err != nil {
		return nil, err
	}
	refs := make([]Ref, len(contents))
	for i, content := range contents {
		refs[i] = *kept[content]
	}
	return refs, nil
}

// RefOf reads content to its end and gives the reference under which it is kept for thread. It fails with ErrBadRef for
// a thread that cannot be in one, and with the error of content.
func RefOf(thread string, content io.Reader) (Ref, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, content)
	if err != nil {
		return Ref{}, fmt.Errorf("read what is to be kept: %w", err)
	}
	return newRef(thread, hex.EncodeToString(sum.Sum(nil)), size)
}

// PutAs keeps content that is said to be ref's, unless that is kept already. Content that is not ref's is ErrChanged, and
// nothing is kept.
func (s *Store) PutAs(ctx context.Context, ref Ref, content io.Reader) error {
	if err := ref.check(); err != nil {
		return err
	}
	_, err := s.put(ctx, ref, content)
	return err
}

// PutNew is PutAs for content that nobody refers to: it is kept without a look whether it is there, and in place of it. Who reads
// it at that moment all the same may find it missing; and content that is not ref's takes what was there with it.
func (s *Store) PutNew(ctx context.Context, ref Ref, content io.Reader) error {
	if err := ref.check(); err != nil {
		return err
	}
	_, err := s.keep(ctx, ref, content)
	return err
}

// Get returns the content, verified. It is ErrMissing or ErrCorrupt.
func (s *Store) Get(ctx context.Context, ref Ref) ([]byte, error) {
	r, err := s.Reader(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Reader returns the content as a stream. Who reads to the end has read verified content, or gets ErrCorrupt in place of
// io.EOF. The stream ends with ctx; the caller closes it.
func (s *Store) Reader(ctx context.Context, ref Ref) (io.ReadCloser, error) {
	if err := ref.check(); err != nil {
		return nil, err
	}
	if err := s.look(ctx, ref); err != nil {
		return nil, ref.failed("read", err)
	}
	ctx, cancel := bounded(ctx, ref.Size)
	object, err := s.objects.Get(ctx, ref.Ref)
	if err != nil {
		cancel()
		return nil, ref.failed("read", err)
	}
	return &reader{ref: ref, object: object, cancel: cancel}, nil
}

// Delete removes one artifact; one that is not there is no error.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	if err := ref.check(); err != nil {
		return err
	}
	if err := s.remove(ctx, ref.Ref); err != nil {
		return ref.failed("delete", err)
	}
	return nil
}

// remove deletes an object; one that is not there is no error.
func (s *Store) remove(ctx context.Context, object string) error {
	_, done, err := s.alone(ctx, object)
	if err != nil {
		return err
	}
	defer done()
	if err := s.objects.Delete(ctx, object); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	return nil
}

// DeleteThread is DeleteThreads for one of them.
func (s *Store) DeleteThread(ctx context.Context, thread string) error {
	if !validThread(thread) {
		return fmt.Errorf("%w: thread %q", ErrBadRef, thread)
	}
	if _, err := s.DeleteThreads(ctx, func(id string) bool { return id == thread }); err != nil {
		return fmt.Errorf("delete what is kept for thread %s: %w", thread, err)
	}
	return nil
}

// put is keep for what is not there, or not whole.
func (s *Store) put(ctx context.Context, ref Ref, content io.Reader) (Ref, error) {
	switch err := s.look(ctx, ref); {
	case err == nil:
		return ref, nil
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, ErrCorrupt): // what is not whole is put again
	default:
		return Ref{}, ref.failed("look for", err)
	}
	return s.keep(ctx, ref, content)
}

// keep puts content in place of what may be there under its name. Content that another put in this process kept meanwhile stays.
func (s *Store) keep(ctx context.Context, ref Ref, content io.Reader) (Ref, error) {
	waited, done, err := s.alone(ctx, ref.Ref)
	if err != nil {
		return Ref{}, ref.failed("keep", err)
	}
	defer done()
	if waited && s.look(ctx, ref) == nil {
		return ref, nil
	}
	ctx, cancel := bounded(ctx, ref.Size)
	defer cancel()
	info, err := s.objects.Put(ctx, jetstream.ObjectMeta{Name: ref.Ref, Opts: chunks(ref.Size)}, content)
	if err != nil {
		return Ref{}, ref.failed("keep", err)
	}
	// A process that was stopped for longer than a put may take may have lost its first pieces meanwhile: put again, they are looked for.
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return Ref{}, ref.failed("keep", err)
	}
	if !ref.matches(info) {
		if err := s.objects.Delete(ctx, ref.Ref); err != nil {
			return Ref{}, ref.failed("remove the changed file kept as", err)
		}
		return Ref{}, fmt.Errorf("keep artifact %s: %w", ref.Ref, ErrChanged)
	}
	return ref, nil
}

// alone waits until nothing else in this process puts or deletes the object, and says whether it had to. Two puts at once, or a put and a
// delete, know only of what there was before both: the pieces of one stay, under no name, and no deletion of their thread finds them.
func (s *Store) alone(ctx context.Context, object string) (waited bool, done func(), err error) {
	for {
		s.mu.Lock()
		other := s.busy[object]
		if other == nil {
			mine := make(chan struct{})
			s.busy[object] = mine
			s.mu.Unlock()
			return waited, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.busy, object)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		waited = true
		select {
		case <-other:
		case <-ctx.Done():
			return waited, nil, ctx.Err()
		}
	}
}

// chunkSize is the library's own, in bytes.
const chunkSize = 128 << 10

// chunks keeps the library from making a whole buffer for less content than that.
func chunks(size int64) *jetstream.ObjectMetaOptions {
	return &jetstream.ObjectMetaOptions{ChunkSize: uint32(min(max(size, 1), chunkSize))}
}

// look is nil when the artifact is there and whole.
func (s *Store) look(ctx context.Context, ref Ref) error {
	ctx, cancel := bounded(ctx, 0)
	defer cancel()
	info, err := s.objects.GetInfo(ctx, ref.Ref)
	if err != nil {
		return err
	}
	return s.whole(ctx, ref, info)
}

// whole says whether info describes ref and every piece of its content is there: a read of one without pieces would
// wait until its deadline, since a piece that never comes is no error to the library.
func (s *Store) whole(ctx context.Context, ref Ref, info *jetstream.ObjectInfo) error {
	if !ref.matches(info) {
		return ErrCorrupt
	}
	if info.Chunks == 0 {
		return nil
	}
	pieces := piecesOf + info.NUID
	state, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(pieces))
	if err != nil {
		return err
	}
	if state.State.Subjects[pieces] != uint64(info.Chunks) {
		return ErrCorrupt
	}
	return nil
}

type reader struct {
	ref    Ref
	object jetstream.ObjectResult
	cancel context.CancelFunc
}

// Read maps the library's errors; it compares the digest itself at the end.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.object.Read(p)
	if err != nil && err != io.EOF {
		err = r.ref.failed("read", err)
	}
	return n, err
}

func (r *reader) Close() error {
	err := r.object.Close()
	r.cancel()
	return err
}

func newRef(thread, sum string, size int64) (Ref, error) {
	if !validThread(thread) {
		return Ref{}, fmt.Errorf("%w: thread %q", ErrBadRef, thread)
	}
	return Ref{Ref: thread + "/" + sum, SHA256: sum, Size: size}, nil
}

func validThread(thread string) bool { return thread != "" && !strings.ContainsAny(thread, "/ \t\n") }

// Valid says whether ref can be that of an artifact of thread.
func (r Ref) Valid(thread string) bool {
	return r.check() == nil && strings.HasPrefix(r.Ref, thread+"/")
}

// check keeps a reference that came from outside from naming anything but an artifact.
func (r Ref) check() error {
	thread, sum, _ := strings.Cut(r.Ref, "/")
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size || sum != r.SHA256 || sum != strings.ToLower(sum) || r.Size < 0 || !validThread(thread) {
		return fmt.Errorf("%w: %q", ErrBadRef, r.Ref)
	}
	return nil
}

func (r Ref) matches(info *jetstream.ObjectInfo) bool {
	sum, err := jetstream.DecodeObjectDigest(info.Digest)
	return err == nil && hex.EncodeToString(sum) == r.SHA256 && info.Size == uint64(r.Size)
}

func (r Ref) failed(doing string, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		err = ErrMissing
	case errors.Is(err, jetstream.ErrDigestMismatch):
		err = ErrCorrupt
	case errors.Is(err, nats.ErrTimeout):
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%s artifact %s: %w", doing, r.Ref, err)
}

// bounded bounds one operation on so many bytes of content.
func bounded(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	size = min(size, slowestRate*int64(longestTime/time.Second))
	return context.WithTimeout(ctx, min(requestTime+time.Duration(size)*time.Second/slowestRate, longestTime))
}
