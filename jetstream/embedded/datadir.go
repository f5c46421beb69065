package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Format is the number of the data directory's layout that this version writes
// and reads.
const Format = 1

// LockedError says who holds the data directory.
type LockedError struct {
	Dir string
	PID int // process of the holder; 0 if it did not say
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%v: %s is held by another process", ErrLocked, e.Dir)
	}
	return fmt.Sprintf("%v: %s is held by process %d", ErrLocked, e.Dir, e.PID)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// lock is the exclusive flock on a data directory. The kernel gives it up with
// the process, however that ends.
type lock struct{ file *os.File }

func acquire(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		pid := holder(f)
		_ = f.Close()
		return nil, &LockedError{Dir: dir, PID: pid}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock the data directory %s: %w", dir, err)
	}
	return &lock{file: f}, nil
}

func holder(f io.Reader) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

func (l *lock) release() { _ = l.file.Close() }

// Lock holds dir as a server in this process does, for who keeps files there while the
// server is elsewhere. It returns *LockedError when another process holds it. The lock
// ends with release, or with the process.
func Lock(dir string) (release func(), err error) {
	l, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

// checkFormat reads the format number of dir, writes it into a new directory,
// and returns an error that wraps ErrNewerFormat if it is not known yet.
func checkFormat(dir string) error {
	path := filepath.Join(dir, "format")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeDurably(path, strconv.Itoa(Format)+"\n")
	}
	if err != nil {
		return fmt.Errorf("read the format of the data directory: %w", err)
	}
	found, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || found < 1 {
		return fmt.Errorf("%s holds %q, which is no format number", path, strings.TrimSpace(string(text)))
	}
	if found > Format {
		return fmt.Errorf("%w: %s has format %d, this version knows %d; use the newer version or another directory",
			ErrNewerFormat, dir, found, Format)
	}
	return nil
}

// writeDurably puts text at path with mode 0600, whole or not at all.
func writeDurably(path, text string) error {
	write := func() error {
		tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
		if err != nil {
			return err
		}
		defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
		_, err = tmp.WriteString(text)
		err = errors.Join(err, tmp.Sync(), tmp.Close())
		if err != nil {
			return err
		}
		if err := os.Rename(tmp.Name(), path); err != nil {
			return err
		}
		d, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
	if err := write(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// defaultMaxStore is three quarters of what the store has and could have.
func defaultMaxStore(store string) (int64, error) {
	if err := os.MkdirAll(store, 0o700); err != nil {
		return 0, fmt.Errorf("make the store: %w", err)
	}
	free, err := DiskFree(store)
	if err != nil {
		return 0, err
	}
	used, err := measure(store)
	if err != nil {
		return 0, err
	}
	return storeLimit(used, free, 1), nil
}

// measure is the number of bytes in the files below dir.
func measure(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the store: %w", err)
	}
	return size, nil
}

// storeLimit is three quarters of what is free above what is used, but never so
// little that the server refuses to open the streams with a size of their own,
// which it reserves whole for each of the copies: a notebook must be readable on a
// disk that is nearly full, and what reserves is not what writes.
func storeLimit(used, free, copies int64) int64 {
	return used + max(free/4*3, copies*leastStore)
}

// leastStore is the 256 MiB of the trail (topology.DefaultTrailMaxBytes) and some
// for the streams that have no size of their own.
const leastStore = 320 << 20

// DiskFree is the number of bytes that this user may still write on the file
// system of path.
func DiskFree(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("measure free space of %s: %w", path, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
