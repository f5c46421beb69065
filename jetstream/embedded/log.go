package embedded

import (
	"fmt"
	"slices"
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
	closing   bool // the server is being shut down
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
	l.pass(zerolog.ErrorLevel, fmt.Sprintf(format, v...))
}

// passing are the beginnings of what a server of a cluster says of the others while
// they start, or one of them is away. That a server has ended says who started it.
var passing = []string{
	"Error trying to connect to route",
	"Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
}

// mending are parts of what a server warns of while it puts right by itself what an
// end by force, an election or a time away left behind. It is for the log file, and
// no alarm: a start after a kill says dozens of them. Who does not answer is said by
// who started the servers.
var mending = []string{
	"] Stream state outdated, ",
	"] Stream state detected prior state, ",
	"] Recovering stream state from index errored: prior state file",
	"Metalayer blocking snapshot ",
	"Catchup for stream ",
	"not cleaned up, retrying",
	"Detected another leader with higher term, will stepdown",
	"Falling behind in health check",
	"has NO quorum, stalled",
}

// pass passes a line on; at a lower level if it passes by itself, is put right, or
// complains of what a shutdown closes.
func (l *serverLog) pass(level zerolog.Level, line string) {
	l.mu.Lock()
	closing := l.closing
	l.mu.Unlock()
	if closing || slices.ContainsFunc(passing, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
		level = zerolog.DebugLevel
	} else if level == zerolog.WarnLevel && slices.ContainsFunc(mending, func(part string) bool { return strings.Contains(line, part) }) {
		level = zerolog.InfoLevel
	}
	l.out.WithLevel(level).Msg(line)
}

func (l *serverLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
}

// plaintextWarning asks for hashed passwords. Ours are random, made here, and in
// files that only this user can read.
const plaintextWarning = "Plaintext passwords detected"

func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, plaintextWarning) {
		return
	}
	l.pass(zerolog.WarnLevel, fmt.Sprintf(format, v...))
}

func (l *serverLog) Noticef(format string, v ...any) { l.out.Debug().Msgf(format, v...) }
func (l *serverLog) Debugf(format string, v ...any)  { l.out.Trace().Msgf(format, v...) }
func (l *serverLog) Tracef(format string, v ...any)  { l.out.Trace().Msgf(format, v...) }

func (l *serverLog) keep(where *string, format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*where = fmt.Sprintf(format, v...)
}
