package research

import (
	"context"
	"errors"
	"io/fs"

	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/tabstack"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// answer is what an attempt brought: a result, or the failure that its call ended with.
type answer struct {
	attempt
	result provider.Result
	err    error // *provider.Error, or why the call was broken off from this side
	raw    raw   // nil when not a byte came
	spool  *spooled
	kept   *event.RunCompleted // its event, when that was made ahead and all that it refers to is kept; nil otherwise
}

func (a answer) close() {
	if a.spool != nil {
		a.spool.close()
	}
}

// ask makes the one call of an attempt and keeps every byte before anything is made of it. The call ends with ctx, and
// when another process has taken the run over.
func (r *Researcher) ask(ctx context.Context, j job, a attempt, asked provider.Provider, key config.Secret, watching *bulletin) answer {
	ctx, release := r.until(ctx, j.thread, errOvertaken, func(t *notebook.Thread) bool {
		run := t.Runs[j.run]
		return run != nil && !run.Terminal() && len(run.Attempts) > a.n
	})
	defer release()
	file, err := r.spool.create(a, r.Now, !j.asked.Replay)
	if err != nil {
		r.Log.Warn().Err(err).Str("run", j.run).Msg("the answer is held in memory only")
	}
	got := answer{attempt: a, spool: file}
	got.result, got.err = asked.Research(ctx, r.request(j, key), &receiver{attempt: a, file: file, watching: watching})
	if err := file.finish(); err != nil {
		r.Log.Warn().Err(err).Str("run", j.run).Msg("the answer is not on the disk")
	}
	if !file.empty() {
		got.raw = file
	}
	if got.err != nil && ctx.Err() != nil {
		got.err = context.Cause(ctx)
	}
	return got
}

// request is what a provider is asked for a run.
func (r *Researcher) request(j job, key config.Secret) provider.Request {
	return provider.Request{
		Query: j.asked.Text, Mode: j.asked.Mode, Nocache: j.asked.Nocache, FetchTimeout: r.Config.Tabstack.FetchTimeout, Key: key.Reveal(),
	}
}

// receiver takes the call in: bytes into the spool, events into the trail. It never ends a call that is paid for.
type receiver struct {
	attempt
	file     *spooled
	watching *bulletin
}

// Bytes implements provider.Sink.
func (s *receiver) Bytes(p []byte) error {
	s.file.write(p)
	_ = pointStreaming.Hit(context.Background()) // there is nothing here that could fail
	return nil
}

// Event implements provider.Sink.
func (s *receiver) Event(e provider.Event) error {
	s.watching.event(s.attempt, e)
	return nil
}

// findAnswer looks for what an earlier process got of an attempt that is still open: in the spool of this machine, or
// among the artifacts. It is nil when there is none, or not a whole one. An answer that ended with the provider's own
// failure is whole too: asking again would buy the same.
func (r *Researcher) findAnswer(ctx context.Context, j job, a attempt) (*answer, error) {
	file, err := r.spool.open(a)
	switch {
	case err == nil:
		if found := r.decode(ctx, j, answer{attempt: a, raw: file, spool: file}, file); found != nil {
			return found, nil
		}
		file.close()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	ref, err := r.Artifacts.Named(ctx, a.thread, artifact.AttemptName(a.run, a.n))
	if err == nil {
		var content []byte
		if content, err = r.Artifacts.Get(ctx, ref); err == nil {
			kept := &spooled{}
			kept.write(content)
			return r.decode(ctx, j, answer{attempt: a, raw: keptRaw(ref)}, kept), nil
		}
	}
	if errors.Is(err, artifact.ErrMissing) || errors.Is(err, artifact.ErrCorrupt) {
		return nil, nil
	}
	return nil, err
}

// decode reads a kept answer by the rules of the call; nil when it is not whole.
func (r *Researcher) decode(ctx context.Context, j job, a answer, content *spooled) *answer {
	billing := "The provider may still bill this call."
	if j.asked.Replay {
		billing = "It was a replay, so nothing is billed."
	}
	a.result, a.err = provider.Read(ctx, content.content(), provider.Reading{
		Provider: tabstack.Name, Protocol: new(tabstack.Events), Sink: discard{}, Now: r.Now, Billing: billing,
	})
	if a.err == nil || ctx.Err() == nil && final(a.err) {
		return &a
	}
	return nil
}

// final says whether a failure stands in the answer itself, so that it is no sign of an answer cut short.
func final(err error) bool {
	failure := provider.AsError(err)
	if failure == nil {
		return false
	}
	switch failure.Code {
	case provider.CodeTaskError, provider.CodeProtocolError, provider.CodeEventTooLarge, provider.CodeAnswerTooLarge:
		return true
	}
	return false
}

type discard struct{}

// Bytes implements provider.Sink.
func (discard) Bytes([]byte) error { return nil }

// Event implements provider.Sink.
func (discard) Event(provider.Event) error { return nil }
