package research

import (
	"context"

	"github.com/factstream/factstream/services/researcher/provider"
)

// playAhead is the first attempt at a replay that is played in one go: it is played, and what it brings is kept, while its claim is on its way.
// That buys nothing, so nothing is lost when the claim comes to nothing, and what was kept goes as that of any void answer does. The answer is in
// memory: a file of the attempt may be that of another process, which has claimed it.
func (r *Researcher) playAhead(work, held context.Context, j job, watching *bulletin) (string, error) {
	played := make(chan *ahead, 1)
	go func() { played <- r.play(held, j) }()
	claim, outcome, err := r.claim(held, j, 0)
	if err == nil && claim.n != 0 {
		err = pointClaimed.Hit(held)
	}
	got := <-played
	if err != nil || claim.n == 0 {
		r.void(context.WithoutCancel(work), j, got.kept)
		return outcome, err
	}
	for _, e := range got.events {
		watching.event(claim, e)
	}
	if err := pointAnswered.Hit(held); err != nil && got.err == nil {
		return "", err
	}
	return r.settle(work, j, got.answer)
}

// ahead is the answer of an attempt that may not be claimed yet.
type ahead struct {
	answer
	events []provider.Event // for the trail
}

// play plays a replay's first attempt and keeps what it brings. What could not be kept is left to whoever settles the answer.
func (r *Researcher) play(ctx context.Context, j job) *ahead {
	got := &ahead{answer: answer{attempt: attempt{j.thread, j.run, 1}, spool: &spooled{}}}
	got.result, got.err = r.replay.Research(ctx, r.request(j, ""), got)
	if !got.spool.empty() {
		got.raw = got.spool
	}
	if got.err != nil {
		if ctx.Err() != nil {
			got.err = context.Cause(ctx)
		}
		return got
	}
	// By a context of its own, which the store bounds: content that is broken off would leave pieces that nobody owns, or all of it.
	keeping := context.WithoutCancel(ctx)
	ref, err := r.keepRaw(keeping, got.answer, "")
	if err != nil {
		return got
	}
	if done, err := r.report(keeping, j, got.answer, ref); err == nil {
		got.kept = &done
	}
	return got
}

// Bytes implements provider.Sink.
func (a *ahead) Bytes(p []byte) error {
	a.spool.write(p)
	_ = pointStreaming.Hit(context.Background()) // there is nothing here that could fail
	return nil
}

// Event implements provider.Sink.
func (a *ahead) Event(e provider.Event) error {
	a.events = append(a.events, e)
	return nil
}
