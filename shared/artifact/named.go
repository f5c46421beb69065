package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/shared/text"
)

// AttemptName is the name under which the raw answer of one attempt of a run is kept, whole or cut short: it is found by
// who knows the attempt only.
func AttemptName(run string, attempt int) string { return run + "." + strconv.Itoa(attempt) }

// The fields of a name's metadata.
const (
	namedRef  = "ref"
	namedSize = "size"
)

// Name gives an artifact of thread a name, so that it can be found without its reference. A name that is taken is given
// to the new one. An artifact may be named before it is there, and is missing to who reads it until then. name has
// letters, digits, dots, dashes and underscores, and at least one dot (ErrBadRef).
func (s *Store) Name(ctx context.Context, thread, name string, ref Ref) error {
	object, err := objectName(thread, name)
	if err != nil {
		return err
	}
	if err := ref.check(); err != nil {
		return err
	}
	if !strings.HasPrefix(ref.Ref, thread+"/") {
		return fmt.Errorf("%w: %q is not of thread %q", ErrBadRef, ref.Ref, thread)
	}
	ctx, cancel := bounded(ctx, 0)
	defer cancel()
	meta := jetstream.ObjectMeta{Name: object, Opts: chunks(0), Metadata: map[string]string{namedRef: ref.Ref, namedSize: strconv.FormatInt(ref.Size, 10)}}
	if _, err := s.objects.Put(ctx, meta, bytes.NewReader(nil)); err != nil {
		return fmt.Errorf("name artifact %s %s: %w", ref.Ref, object, err)
	}
	return nil
}

// Named gives the reference that a name stands for, or ErrMissing when it stands for none. The artifact itself may not be
// there (yet).
func (s *Store) Named(ctx context.Context, thread, name string) (Ref, error) {
	object, err := objectName(thread, name)
	if err != nil {
		return Ref{}, err
	}
	ctx, cancel := bounded(ctx, 0)
	defer cancel()
	info, err := s.objects.GetInfo(ctx, object)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		err = ErrMissing
	}
	if err != nil {
		return Ref{}, fmt.Errorf("find artifact %s: %w", object, err)
	}
	ref, err := refOf(info)
	if err != nil {
		return Ref{}, fmt.Errorf("find artifact %s: %w", object, err)
	}
	return ref, nil
}

// Naming is one name and what it names.
type Naming struct {
	Thread string `json:"thread"`
	Name   string `json:"name"`
	Ref    Ref    `json:"ref"`
}

// Names lists every name that there is, in no order. One whose reference cannot be read is left out: nothing can be found by it.
func (s *Store) Names(ctx context.Context) ([]Naming, error) {
	all, err := s.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the names of artifacts: %w", err)
	}
	var names []Naming
	for _, info := range all {
		thread, name, _ := strings.Cut(info.Name, "/")
		if !strings.Contains(name, ".") { // an artifact
			continue
		}
		if ref, err := refOf(info); err == nil {
			names = append(names, Naming{Thread: thread, Name: name, Ref: ref})
		}
	}
	return names, nil
}

// refOf reads the reference that a name's object holds.
func refOf(info *jetstream.ObjectInfo) (Ref, error) {
	_, sum, _ := strings.Cut(info.Metadata[namedRef], "/")
	size, err := strconv.ParseInt(info.Metadata[namedSize], 10, 64)
	ref := Ref{Ref: info.Metadata[namedRef], SHA256: sum, Size: size}
	if err != nil || ref.check() != nil {
		return Ref{}, ErrCorrupt
	}
	return ref, nil
}

// Unname takes a name away and leaves the artifact; a name that is not there is no error.
func (s *Store) Unname(ctx context.Context, thread, name string) error {
	object, err := objectName(thread, name)
	if err != nil {
		return err
	}
	if err := s.objects.Delete(ctx, object); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete the name %s: %w", object, err)
	}
	return nil
}

// DeleteThreads removes all artifacts and names of the threads of which gone says so, and returns how many there were.
// It reads the names of all there are once, for however many threads, since the store cannot be asked for those with a
// prefix; threads are deleted rarely.
func (s *Store) DeleteThreads(ctx context.Context, gone func(thread string) bool) (int, error) {
	all, err := s.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list the artifacts: %w", err)
	}
	deleted := 0
	for _, info := range all {
		thread, _, found := strings.Cut(info.Name, "/")
		if !found || !gone(thread) {
			continue
		}
		if err := s.remove(ctx, info.Name); err != nil {
			return deleted, fmt.Errorf("delete artifact %s: %w", info.Name, err)
		}
		deleted++
	}
	return deleted, nil
}

// objectName keeps names and references apart: a reference has no dot.
func objectName(thread, name string) (string, error) {
	valid := strings.Contains(name, ".") && len(name) <= 200
	for part := range strings.SplitSeq(name, ".") {
		valid = valid && text.ValidToken(part)
	}
	if !valid || !validThread(thread) {
		return "", fmt.Errorf("%w: name %q of thread %q", ErrBadRef, name, thread)
	}
	return thread + "/" + name, nil
}
