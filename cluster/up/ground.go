package up

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
)

const (
	// leastFree is what must be free on the disk for a new notebook.
	leastFree = config.LeastFree
	// leastToRead is what a notebook that is there takes to be read, and asked no more until there is room: files of the processes, of some KiB.
	leastToRead = 1 << 20
)

var (
	// ErrDiskFull: too little is free where the notebook is kept.
	ErrDiskFull = errors.New("the disk is too full")
	// ErrPortInUse: another program listens where this one should.
	ErrPortInUse = errors.New("the port is in use")
)

// prepare makes the data directory and checks that it can be written to and has room.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the data directory: %w; set FACTSTREAM_DATA to another place", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("cannot write to the data directory: %w; set FACTSTREAM_DATA to another place", err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	free, err := embedded.DiskFree(dir)
	if err != nil {
		return err
	}
	return enough(dir, free, leastFor(dir))
}

// leastFor is what must be free for the notebook of a data directory to be started.
func leastFor(dir string) int64 {
	if embedded.Kept(dir) {
		return leastToRead
	}
	return leastFree
}

// recording checks that the recorded stream that is to be played can be read; file is empty when there is none.
func recording(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read the recorded stream: %w; set REPLAY_FILE to another, or unset it", err)
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return fmt.Errorf("the recorded stream %s is not a file; set REPLAY_FILE to another, or unset it", file)
	}
	return nil
}

func enough(dir string, free, least int64) error {
	if free < least {
		return fmt.Errorf("%w: %d MiB are free at %s, %d MiB are needed; make room, or set FACTSTREAM_DATA to a place on another disk",
			ErrDiskFull, free>>20, dir, least>>20)
	}
	return nil
}

// portProblem explains why nothing can listen on address, which variable sets.
func portProblem(address, variable string, err error) error {
	if !portTaken(err) {
		return fmt.Errorf("cannot listen on %s: %w; set %s to another address", address, err, variable)
	}
	who := "another program"
	if _, text, err := net.SplitHostPort(address); err == nil {
		if port, err := strconv.Atoi(text); err == nil {
			if holder := portHolder(port); holder != "" {
				who = holder
			}
		}
	}
	return fmt.Errorf("%w: %s listens on %s; stop it, or set %s to another", ErrPortInUse, who, address, variable)
}
