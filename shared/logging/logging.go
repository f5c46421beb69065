// Package logging makes the logger of a process: lines for people when standard error is a terminal, else one JSON
// object per line, with the service's name in each and no secret in any.
package logging

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/shared/config"
)

// ForProcess makes the logger of this process on standard error, by its configuration. The redactor knows the
// configured secrets; whoever loads a saved key adds it.
func ForProcess(cfg config.Config) (zerolog.Logger, *Redactor) {
	redactor := NewRedactor(cfg.Secrets()...)
	return New(cfg.Service, cfg.LogLevel, os.Stderr, redactor), redactor
}

// New makes a logger that writes to out what is of level ("trace" to "error"; anything else counts as "info") or above.
func New(service, level string, out io.Writer, redactor *Redactor) zerolog.Logger {
	least, err := zerolog.ParseLevel(level)
	if err != nil || least == zerolog.NoLevel {
		least = zerolog.InfoLevel
	}
	safe := redactor.Writer(out)
	if terminal(out) {
		safe = zerolog.ConsoleWriter{Out: safe, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(safe).Level(least).With().Timestamp().Str("service", service).Logger()
}

func terminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// Milliseconds matter when lines of several processes are read together; zerolog takes the format from a global only.
func init() { zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00" }
