package tabstack

import (
	"context"
	"io"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/factstream/factstream/services/researcher/provider"
)

// watch ends a call that has become silent: one timer, set anew as the call goes from connecting to waiting for the
// first byte to reading. Its context's cause is then provider.CodeTransport
// (no connection), provider.CodeStall or provider.CodeTimeout.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	config Config
	call   *time.Timer

	mu        sync.Mutex
	silence   *time.Timer
	dialled   bool
	lingering bool
}

func newWatch(ctx context.Context, config Config) *watch {
	w := &watch{config: config}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.call = time.AfterFunc(config.CallTimeout, func() { w.cancel(provider.CodeTimeout) })
	w.silence = time.AfterFunc(config.ConnectTimeout, func() { w.cancel(w.silent()) })
	return w
}

// stop ends both timers and the context.
func (w *watch) stop() {
	w.mu.Lock()
	w.silence.Stop()
	w.mu.Unlock()
	w.call.Stop()
	w.cancel(context.Canceled)
}

// traced returns the context for the request: it moves the timer on as the connection is made and the answer begins.
func (w *watch) traced() context.Context {
	return httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dialled = true
			w.silence.Reset(w.config.FirstByteTimeout)
		},
		GotFirstResponseByte: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.silence.Reset(w.config.IdleTimeout)
		},
	})
}

// connected says whether a connection was made, so that the request may have reached the provider.
func (w *watch) connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialled
}

// silent says what it means that the timer ran out.
func (w *watch) silent() provider.Code {
	if w.connected() {
		return provider.CodeStall
	}
	return provider.CodeTransport
}

// ended gives what follows the terminal event one short while in all.
func (w *watch) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lingering = true
	w.silence.Reset(lingering)
}

// watchedBody gives every read the idle time. The timer rests between reads: time that the sink takes is not silence.
type watchedBody struct {
	io.Reader
	watch *watch
}

func (b watchedBody) Read(p []byte) (int, error) {
	b.watch.mark(func() { b.watch.silence.Reset(b.watch.config.IdleTimeout) })
	defer b.watch.mark(func() { b.watch.silence.Stop() })
	return b.Reader.Read(p)
}

func (w *watch) mark(set func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lingering {
		set()
	}
}
