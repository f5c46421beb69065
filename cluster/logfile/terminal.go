package logfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Terminal shows log lines of several services to a person: those of its level and above, and what is no log line at
// all, such as a panic, of which it shows the beginning. It may be used by several goroutines.
type Terminal struct {
	least zerolog.Level
	out   io.Writer
	color bool

	mu    sync.Mutex
	plain map[string]int // lines in a row, by service, that are no log lines
}

// mostPlain is how many lines of a panic are shown; its whole text is in the log file.
const mostPlain = 12

// NewTerminal shows lines of level least and above on out, in colour if it is a terminal.
func NewTerminal(out io.Writer, least zerolog.Level, color bool) *Terminal {
	return &Terminal{least: least, out: out, color: color, plain: map[string]int{}}
}

// Show shows one line of the service, with or without its newline, if it is for a person to see.
func (t *Terminal) Show(service string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line = bytes.TrimRight(line, "\r\n")
	var entry struct {
		Level *string `json:"level"`
	}
	if err := json.Unmarshal(line, &entry); err != nil || entry.Level == nil {
		t.showPlain(service, line)
		return
	}
	t.plain[service] = 0
	if level, err := zerolog.ParseLevel(*entry.Level); err == nil && level < t.least {
		return
	}
	console := zerolog.ConsoleWriter{
		Out: prefixed{t.out, service}, NoColor: !t.color, TimeFormat: time.TimeOnly, FieldsExclude: []string{"service"},
	}
	if _, err := console.Write(line); err != nil {
		t.showPlain(service, line)
	}
}

func (t *Terminal) showPlain(service string, line []byte) {
	t.plain[service]++
	switch n := t.plain[service]; {
	case n <= mostPlain:
		_, _ = fmt.Fprintf(prefixed{t.out, service}, "%s\n", line)
	case n == mostPlain+1:
		_, _ = fmt.Fprintf(prefixed{t.out, service}, "... the rest is in its log file\n")
	}
}

// prefixed puts the service's name before what is written.
type prefixed struct {
	out     io.Writer
	service string
}

func (p prefixed) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(p.out, "%-10s | %s", p.service, line); err != nil {
		return 0, err
	}
	return len(line), nil
}
