// Package logfile keeps the log of each service in a file of limited size, and picks out what a person at the terminal
// should see of it.
package logfile

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

// File is a log file that is never larger than its limit: a full one becomes <path>.1, that one <path>.2, and what would
// be <path>.3 is gone. It may be used by several goroutines.
//
// A write that fails, on a full disk for instance, is dropped and counted: whoever logs must not fail because of it.
type File struct {
	path  string
	limit int64

	mu      sync.Mutex
	file    *os.File // nil while it cannot be opened
	size    int64
	dropped int
}

// DefaultLimit is the size in bytes at which a log file is put aside; with the two before it a service's log takes three
// times that.
const DefaultLimit = 8 << 20

const kept = 2 // files that were put aside

// Open opens or makes the log file at path, to be appended to. A limit of 0 is DefaultLimit.
func Open(path string, limit int64) (*File, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	f := &File{path: path, limit: limit}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}

// Write appends p as a whole, which should be one or more whole lines. It always reports success.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil && f.size > 0 && f.size+int64(len(p)) > f.limit {
		f.rotate()
	}
	if f.file == nil && f.open() != nil {
		f.dropped++
		return len(p), nil
	}
	if f.dropped > 0 {
		n, _ := fmt.Fprintf(f.file, "(%d lines could not be written here)\n", f.dropped)
		f.size += int64(n)
		if n > 0 {
			f.dropped = 0
		}
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	if err != nil {
		f.dropped++
	}
	return len(p), nil
}

// Close closes the file; what is written later is dropped or opens it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	return nil
}

// rotate puts the file aside. When that fails it is emptied instead: the limit holds.
func (f *File) rotate() {
	_ = f.file.Close()
	f.file = nil
	for i := kept; i >= 1; i-- {
		from := f.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", f.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); err != nil && i == 1 {
			_ = os.Truncate(f.path, 0)
		}
	}
}

// Lines is a writer that passes on whole lines, each with its newline, one call for each. A line longer than 64 KiB is
// cut into several.
type Lines struct {
	Each func(line []byte)

	mu   sync.Mutex
	rest []byte
}

const longestLine = 64 << 10

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			end = len(p)
		}
		end = min(end, longestLine-len(l.rest))
		l.rest = append(l.rest, p[:end]...)
		p = p[end:]
		if l.rest[len(l.rest)-1] == '\n' || len(l.rest) >= longestLine {
			l.flush()
		}
	}
	return n, nil
}

// Flush passes on what has come of an unfinished line, when the process that writes has ended.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

func (l *Lines) flush() {
	if len(l.rest) == 0 {
		return
	}
	if l.rest[len(l.rest)-1] != '\n' {
		l.rest = append(l.rest, '\n')
	}
	l.Each(l.rest)
	l.rest = l.rest[:0]
}
