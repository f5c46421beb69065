// Package deletion takes away what a thread or a run leaves beside its tombstone: events, trail, artifacts and model
// replies. It is done at once by whoever appended the tombstone and again later, since a worker may have saved
// something meanwhile.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model/replies"
	"github.com/factstream/factstream/shared/notebook"
)

// ErrNoTombstone means that thread.deleted is not in the stream: nothing was purged, since a purge without it would
// make the thread as if it had never been.
var ErrNoTombstone = errors.New("the thread has no tombstone")

// Purge removes everything of a deleted thread but its tombstone: its events up to that, the trail, the artifacts and
// the replies. It may be repeated. What fails does not keep the rest from being done; the error names all of it.
// ErrNoTombstone when the thread was not deleted.
func Purge(ctx context.Context, js jetstream.JetStream, artifacts *artifact.Store, thread string) error {
	if err := Events(ctx, js, thread); errors.Is(err, ErrNoTombstone) {
		return err
	} else if err != nil {
		return errors.Join(err, artifacts.DeleteThread(ctx, thread))
	}
	return artifacts.DeleteThread(ctx, thread)
}

// Events is Purge without the artifacts, for who removes those of many threads at once.
func Events(ctx context.Context, js jetstream.JetStream, thread string) error {
	stream, err := js.Stream(ctx, topology.Notebook)
	if err != nil {
		return fmt.Errorf("purge thread %s: %w", thread, err)
	}
	// The sequence is asked of the stream: others may append their own events behind the tombstone.
	tombstone, err := stream.GetLastMsgForSubject(ctx, event.Event{Thread: thread, Entity: topology.NoID, Data: event.ThreadDeleted{}}.Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("purge thread %s: %w", thread, ErrNoTombstone)
	}
	if err != nil {
		return fmt.Errorf("purge thread %s: look for its tombstone: %w", thread, err)
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(topology.ThreadFilter(thread)), jetstream.WithPurgeSequence(tombstone.Sequence))
	if err != nil {
		err = fmt.Errorf("purge the events of thread %s: %w", thread, err)
	}
	return errors.Join(err, purgeTrail(ctx, js, topology.ThreadTrail(thread)), forgetReplies(ctx, js, thread))
}

// Receipt is what is kept of one run outside the notebook's events.
type Receipt struct {
	Thread, Run string
	Attempts    int
	Refs        []artifact.Ref // of this run only: what another run that is kept refers to is left out

	kept map[string]bool // what other runs refer to
}

// ReceiptOf reads the receipt of a run from its thread. It is pure.
func ReceiptOf(t *notebook.Thread, run string) Receipt {
	r := t.Runs[run]
	if r == nil {
		return Receipt{Thread: t.ID, Run: run}
	}
	receipt := Receipt{Thread: t.ID, Run: run, Attempts: len(r.Attempts), kept: map[string]bool{}}
	for id, other := range t.Runs {
		if id != run && !other.Deleted {
			for _, ref := range refs(other) {
				receipt.kept[ref.Ref] = true
			}
		}
	}
	for _, ref := range refs(r) {
		if !receipt.kept[ref.Ref] && !slices.Contains(receipt.Refs, ref) {
			receipt.Refs = append(receipt.Refs, ref)
		}
	}
	return receipt
}

// VoidOf lists what was kept for the answer of a run that ended otherwise before the answer was settled, and that no run of the thread refers
// to. The raw answer is not of it, but for a replay's: it is the trail of its attempt, under whose name it is found. While another run of the
// thread is open nothing is listed, since the same content may be kept for that one at this moment; what stays so is Unwanted later. It is pure.
func VoidOf(t *notebook.Thread, run string, answer event.RunCompleted) (void []artifact.Ref) {
	r := t.Runs[run]
	if r == nil || r.Failure == nil {
		return nil
	}
	kept := map[string]bool{answer.Raw.Ref: !r.Requested.Replay}
	for _, r := range t.Runs {
		if !r.Terminal() {
			return nil
		}
		if !r.Deleted {
			for _, ref := range refs(r) {
				kept[ref.Ref] = true
			}
		}
	}
	for _, ref := range refsOf(answer.Kept()) {
		if !kept[ref.Ref] && !slices.Contains(void, ref) {
			void = append(void, ref)
		}
	}
	return void
}

// Unwanted says whether an artifact of the thread that has no name is what an answer left that came to nothing: the thread may have had such an
// answer, nothing of the thread is open, so that nobody keeps anything for it at this moment, and no run refers to the artifact. It is pure.
func Unwanted(t *notebook.Thread, ref artifact.Ref) bool {
	if !t.Exists() || !HadVoid(t) { // all that a deleted thread had goes with it
		return false
	}
	for _, r := range t.Runs {
		if r.Open || !r.Terminal() {
			return false
		}
	}
	return !Refers(t, ref)
}

// HadVoid says whether an answer of the thread may have come to nothing after it was kept: a run ended otherwise, or had more than one attempt.
// It is pure.
func HadVoid(t *notebook.Thread) bool {
	for _, r := range t.Runs {
		if r.Failure != nil || len(r.Attempts) > 1 {
			return true
		}
	}
	return false
}

// Refers says whether the answer of a run of the thread, which has its receipt still, refers to an artifact. It is pure.
func Refers(t *notebook.Thread, ref artifact.Ref) bool {
	for _, r := range t.Runs {
		if !r.Deleted && slices.Contains(refs(r), ref) {
			return true
		}
	}
	return false
}

// SharedWithDeleted says whether an answer refers to what a deleted run of the thread had, too. It is pure.
func SharedWithDeleted(t *notebook.Thread, answer event.RunCompleted) bool {
	mine := refsOf(answer.Kept())
	for _, r := range t.Runs {
		if r.Deleted && slices.ContainsFunc(refs(r), func(ref artifact.Ref) bool { return slices.Contains(mine, ref) }) {
			return true
		}
	}
	return false
}

// refs lists what a completed run refers to.
func refs(r *notebook.Run) []artifact.Ref {
	if r.Completed == nil {
		return nil
	}
	return refsOf(r.Completed.Kept)
}

func refsOf(blobs []event.Blob) []artifact.Ref {
	refs := make([]artifact.Ref, len(blobs))
	for i, b := range blobs {
		refs[i] = artifact.Ref{Ref: b.Ref, SHA256: b.SHA256, Size: b.Size}
	}
	return refs
}

// PurgeRun removes the artifacts and the trail of a deleted run. It may be repeated.
func PurgeRun(ctx context.Context, js jetstream.JetStream, artifacts *artifact.Store, receipt Receipt) error {
	var faults []error
	for n := 1; n <= receipt.Attempts; n++ {
		faults = append(faults, forgetAttempt(ctx, artifacts, receipt, n))
	}
	for _, ref := range receipt.Refs {
		faults = append(faults, artifacts.Delete(ctx, ref))
	}
	return errors.Join(append(faults, purgeTrail(ctx, js, topology.RunTrail(receipt.Thread, receipt.Run)))...)
}

// forgetAttempt removes the name of an attempt's raw answer, and the answer itself unless another run has the same.
func forgetAttempt(ctx context.Context, artifacts *artifact.Store, receipt Receipt, n int) error {
	name := artifact.AttemptName(receipt.Run, n)
	ref, err := artifacts.Named(ctx, receipt.Thread, name)
	switch {
	case errors.Is(err, artifact.ErrMissing):
		return nil
	case err == nil && !receipt.kept[ref.Ref]:
		if err := artifacts.Delete(ctx, ref); err != nil {
			return err
		}
	case err != nil && !errors.Is(err, artifact.ErrCorrupt):
		return err
	}
	return artifacts.Unname(ctx, receipt.Thread, name)
}

func purgeTrail(ctx context.Context, js jetstream.JetStream, filter string) error {
	trail, err := js.Stream(ctx, topology.Trail)
	if err == nil {
		err = trail.Purge(ctx, jetstream.WithPurgeSubject(filter))
	}
	if err != nil {
		return fmt.Errorf("purge the trail %s: %w", filter, err)
	}
	return nil
}

func forgetReplies(ctx context.Context, js jetstream.JetStream, thread string) error {
	bucket, err := js.KeyValue(ctx, topology.BucketReplies)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", topology.BucketReplies, err)
	}
	_, err = replies.New(bucket).DeleteThread(ctx, thread)
	return err
}
