package embedded

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// serverLog passes the server's log on and remembers the last error, because a
// server that does not get ready does not say why in any other way.
type serverLog struct {
	out zerolog.Logger

	mu        sync.Mutex
	last      string
	lastFatal string
	broken    bool // a stream refuses every write
}

func newServerLog(out zerolog.Logger) *serverLog {
	return &serverLog{out: out.With().Str("component", "nats").Logger()}
}

func (l *serverLog) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastFatal
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.keep(&l.lastFatal, format, v...)
	l.Errorf(format, v...)
}

// criticalWrite is in what the server says when a stream could not be written. It
// says it in no other way, and the stream takes no write until it is opened again.
const criticalWrite = "critical write error"

func (l *serverLog) Errorf(format string, v ...any) {
	l.keep(&l.last, format, v...)
	if strings.Contains(strings.ToLower(format), criticalWrite) {
		l.mu.Lock()
		l.broken = true
		l.mu.Unlock()
	}
	l.out.Error().Msgf(format, v...)
}

// plaintextWarning asks for hashed passwords. Ours are random, made here, and in
// files that only this user can read.
const plaintextWarning = "Plaintext passwords detected"

func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, plaintextWarning) {
		return
	}
	l.out.Warn().Msgf(format, v...)
}

func (l *serverLog) Noticef(format string, v ...any) { l.out.Debug().Msgf(format, v...) }
func (l *serverLog) Debugf(format string, v ...any)  { l.out.Trace().Msgf(format, v...) }
func (l *serverLog) Tracef(format string, v ...any)  { l.out.Trace().Msgf(format, v...) }

func (l *serverLog) keep(where *string, format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*where = fmt.Sprintf(format, v...)
}
