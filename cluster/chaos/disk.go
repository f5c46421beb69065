package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/factstream/factstream/jetstream/embedded"
)

// Disk is a small file system of its own that can be filled.
type Disk struct {
	Dir string

	mu      sync.Mutex
	ballast *os.File
}

const (
	// diskSize leaves room for what a paid call needs (256 MiB, also of the three quarters that the bus takes for its store).
	diskSize = 640 << 20
	// lowLeaves is less than a paid call needs, and enough for everything else.
	lowLeaves = 200 << 20
)

// ErrNoDisk: this user, or this system, cannot make a file system.
var ErrNoDisk = errors.New("no file system of its own can be mounted")

// Mount makes a file system in memory at dir. Its error wraps ErrNoDisk where that is not allowed.
func Mount(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := mount(dir, diskSize); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	return &Disk{Dir: dir}, nil
}

// Fill takes room until so many bytes are left; 0 takes all of it.
func (d *Disk) Fill(leave int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ballast == nil {
		var err error
		if d.ballast, err = os.OpenFile(filepath.Join(d.Dir, "ballast"), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	free, err := embedded.DiskFree(d.Dir)
	if err != nil {
		return err
	}
	info, err := d.ballast.Stat()
	if err != nil {
		return err
	}
	size := info.Size() + free - leave
	if size <= info.Size() {
		return nil
	}
	for err = allocate(d.ballast, info.Size(), size-info.Size()); leave == 0 && err != nil && size > info.Size(); { // others write at the same time
		size -= 64 << 10
		err = allocate(d.ballast, info.Size(), max(size-info.Size(), 0))
	}
	return err
}

// Empty gives the room back.
func (d *Disk) Empty() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ballast == nil {
		return nil
	}
	// What is removed takes room for as long as anybody has it open, and so has a process that this one is just starting, until it runs its program.
	err := errors.Join(d.ballast.Truncate(0), d.ballast.Close(), os.Remove(d.ballast.Name()))
	d.ballast = nil
	return err
}

// Unmount takes it away again, with all that is in it.
func (d *Disk) Unmount() error { return errors.Join(d.Empty(), unmount(d.Dir)) }
