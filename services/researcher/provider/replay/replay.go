// Package replay plays a recorded stream as if a provider sent it, so that everything works without a key and nothing
// is billed.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/tabstack"
)

// PieceSize is the size of the pieces in which a recording is played, in bytes; small, so that every event is cut.
const PieceSize = 512

// DefaultMode is the mode of a request that names none.
const DefaultMode = "fast"

// Config says what to play.
type Config struct {
	// Provider is the recorded provider whose name the replay has; "tabstack" when empty, which is the only one so far.
	Provider string
	// File is a recorded stream to play whatever the mode (REPLAY_FILE); when empty the built-in recording of provider
	// and mode is played.
	File string
	// Delay is the time between two pieces (REPLAY_DELAY).
	Delay time.Duration
	// Now stamps the events; time.Now.
	Now func() time.Time
}

// ErrProvider says that no recording of that provider can be played.
var ErrProvider = errors.New("replay: no such recorded provider")

// Replay is the provider that plays recordings. It is safe for concurrent use.
type Replay struct {
	config Config
	file   []byte
}

var _ provider.Provider = (*Replay)(nil)

// New reads the file, if one is configured, and checks the provider (ErrProvider).
func New(config Config) (*Replay, error) {
	if config.Provider == "" {
		config.Provider = tabstack.Name
	}
	if config.Provider != tabstack.Name {
		return nil, fmt.Errorf("%w: %q", ErrProvider, config.Provider)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	r := &Replay{config: config}
	if config.File != "" {
		file, err := os.ReadFile(config.File)
		if err != nil {
			return nil, fmt.Errorf("replay: read the recorded stream: %w", err)
		}
		r.file = file
	}
	return r, nil
}

// Name implements provider.Provider.
func (r *Replay) Name() string { return r.config.Provider }

// atOnce is the size of the largest recording that is played in one go, in bytes. Any larger one takes a while and is not held in memory.
const atOnce = 1 << 20

// AtOnce says whether a recording is played in one go, and is small enough to be held in memory: without pauses, and of at most 1 MiB.
func (r *Replay) AtOnce(mode string) bool {
	stream, err := r.recording(mode)
	return err == nil && r.config.Delay == 0 && len(stream) <= atOnce
}

// Research implements provider.Provider. The recording is played as it is, but for metadata.prompt, where the query
// stands. No key is needed.
func (r *Replay) Research(ctx context.Context, req provider.Request, sink provider.Sink) (provider.Result, error) {
	stream, err := r.recording(req.Mode)
	if err != nil {
		return provider.Result{}, &provider.Error{Provider: r.Name(), Code: provider.CodeBadRequest, Err: err,
			Detail: fmt.Sprintf("There is no recorded stream for mode %q. %s", req.Mode, billing)}
	}
	played := &pieces{ctx: ctx, rest: withPrompt(stream, req.Query), delay: r.config.Delay}
	return r.Decode(ctx, played, sink)
}

// Decode implements provider.Provider.
func (r *Replay) Decode(ctx context.Context, stream io.Reader, sink provider.Sink) (provider.Result, error) {
	return provider.Read(ctx, stream, provider.Reading{
		Provider: r.Name(), Protocol: new(tabstack.Events), Sink: sink, Now: r.config.Now, Billing: billing,
	})
}

const billing = "It was a replay, so nothing is billed."

func (r *Replay) recording(mode string) ([]byte, error) {
	if r.file != nil {
		return r.file, nil
	}
	if mode == "" {
		mode = DefaultMode
	}
	return fixtures.Stream(r.config.Provider, mode)
}

// pieces gives out a stream piece by piece, with a delay between two, and ends early when its context ends.
type pieces struct {
	ctx     context.Context
	rest    []byte
	delay   time.Duration
	started bool
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if p.started && p.delay > 0 {
		timer := time.NewTimer(p.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	p.started = true
	n := copy(b[:min(len(b), PieceSize)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
