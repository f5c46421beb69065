package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/settings"
)

// File is an open backup. What its methods give was compared with the manifest's hashes by Open.
type File struct {
	manifest Manifest
	zip      *zip.ReadCloser
	members  map[string]*zip.File
	last     uint64 // first sequence of the last message
}

// Open opens the backup at path and reads all of it once to see that it is whole. The caller closes it. Errors: ErrNotBackup,
// ErrDamaged, ErrNewer, or why the file cannot be read.
func Open(ctx context.Context, path string) (*File, error) {
	archive, err := zip.OpenReader(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("the backup cannot be read: %w", err)
	case err != nil: // also what was cut: the list of members stands at the end
		return nil, fmt.Errorf("%w, or it is cut: %s: %w", ErrNotBackup, path, err)
	}
	f, err := read(ctx, archive.File)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), archive.Close())
	}
	f.zip = archive
	return f, nil
}

// read checks the members of an archive.
func read(ctx context.Context, members []*zip.File) (*File, error) {
	f := &File{members: map[string]*zip.File{}}
	for _, member := range members {
		if f.members[member.Name] != nil {
			return nil, fmt.Errorf("%w: it has two members %q", ErrDamaged, member.Name)
		}
		f.members[member.Name] = member
	}
	if f.members[memberManifest] == nil {
		return nil, fmt.Errorf("%w: it has no %s", ErrNotBackup, memberManifest)
	}
	body, err := f.all(memberManifest, maxManifest)
	if err != nil {
		return nil, err
	}
	if f.manifest, err = parseManifest(body); err != nil {
		return nil, err
	}
	if len(f.members) != len(f.manifest.Members)+1 {
		return nil, fmt.Errorf("%w: it has %d members, its manifest names %d", ErrDamaged, len(f.members), len(f.manifest.Members)+1)
	}
	for _, member := range f.manifest.Members {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := f.check(member); err != nil {
			return nil, err
		}
	}
	return f, f.checkCounts(ctx)
}

// Close closes the file.
func (f *File) Close() error { return f.zip.Close() }

// Manifest says what is in the file.
func (f *File) Manifest() Manifest { return f.manifest }

func (f *File) open(name string) (io.ReadCloser, error) {
	member := f.members[name]
	if member == nil {
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, name)
	}
	r, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return r, nil
}

func (f *File) all(name string, most int64) (body []byte, err error) {
	r, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	body, err = io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, name, most)
	}
	return body, nil
}

func (f *File) check(member Member) (err error) {
	r, err := f.open(member.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	sum := &hashed{into: io.Discard, sum: sha256.New()}
	if _, err := io.Copy(sum, io.LimitReader(r, member.Size+1)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, member.Name, err)
	}
	if sum.size != member.Size || sum.hex() != member.SHA256 {
		return fmt.Errorf("%w: %s is not what was written", ErrDamaged, member.Name)
	}
	return nil
}

// checkCounts reads every line once.
func (f *File) checkCounts(ctx context.Context) error {
	var got Counts
	var last uint64
	err := f.Messages(ctx, func(m projector.Message) error {
		got.Events++
		last, f.last = m.Seq, m.Original
		return nil
	})
	if err != nil {
		return err
	}
	if err := f.Names(func(artifact.Naming) error { got.Names++; return nil }); err != nil {
		return err
	}
	if err := f.Trail(func(projector.Message) error { got.Trail++; return nil }); err != nil {
		return err
	}
	want := f.manifest.Counts
	if got.Events != want.Events || got.Names != want.Names || got.Trail != want.Trail || last > f.manifest.LastSequence {
		return fmt.Errorf("%w: it has %d events up to %d, %d names and %d lines of trail; its manifest says %d up to %d, %d and %d", ErrDamaged,
			got.Events, last, got.Names, got.Trail, want.Events, f.manifest.LastSequence, want.Names, want.Trail)
	}
	return nil
}

// Messages gives every message in order. do's error ends it.
func (f *File) Messages(ctx context.Context, do func(projector.Message) error) error {
	return f.lines(memberNotebook, func(r io.Reader) error {
		return eachMessage(r, func(m projector.Message) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(m)
		})
	})
}

// Artifacts gives the content of every artifact. do's error ends it.
func (f *File) Artifacts(ctx context.Context, do func(artifact.Ref, io.Reader) error) error {
	for _, member := range f.manifest.Members {
		ref, ok := refOfMember(member)
		if !ok {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r, err := f.open(member.Name)
		if err != nil {
			return err
		}
		if err := errors.Join(do(ref, r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Names gives the names of artifacts. do's error ends it.
func (f *File) Names(do func(artifact.Naming) error) error {
	return f.lines(memberNames, func(r io.Reader) error {
		return eachLine(memberNames, r, func(n artifact.Naming) error {
			if !n.Ref.Valid(n.Thread) || !strings.Contains(n.Name, ".") {
				return fmt.Errorf("%w: %s names %q of thread %q", ErrDamaged, memberNames, n.Name, n.Thread)
			}
			return do(n)
		})
	})
}

// Trail gives what the provider said. do's error ends it.
func (f *File) Trail(do func(projector.Message) error) error {
	return f.lines(memberTrail, func(r io.Reader) error {
		return eachLine(memberTrail, r, func(l line) error {
			if !strings.HasPrefix(l.Subject, "trail.") || strings.Count(l.Subject, ".") != 3 || strings.ContainsAny(l.Subject, "*> \t\r\n") {
				return fmt.Errorf("%w: %s has the subject %q", ErrDamaged, memberTrail, l.Subject)
			}
			return do(l.message())
		})
	})
}

// Settings gives what was saved, with the keys if they are in the file.
func (f *File) Settings() (patch settings.Patch, err error) {
	return patch, f.readSettings(&patch)
}

// readSettings reads the members of the settings into one value.
func (f *File) readSettings(into any) error {
	for _, name := range []string{memberSettings, memberKeys} {
		if f.members[name] == nil {
			continue
		}
		body, err := f.all(name, maxSettings)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, into); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
		}
	}
	return nil
}

// lines reads a member; one that is not there has no lines.
func (f *File) lines(name string, read func(io.Reader) error) error {
	if f.members[name] == nil {
		return nil
	}
	r, err := f.open(name)
	if err != nil {
		return err
	}
	return errors.Join(read(r), r.Close())
}
