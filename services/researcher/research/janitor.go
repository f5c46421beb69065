package research

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/notebook"
)

// purges is how often this process repeats the purge of a deleted thread or run: soon, and an hour later, when nobody
// can be at work for it any more.
const purges = 2

// keepUnknown is how long an answer is kept whose thread the stream does not know.
const keepUnknown = 7 * 24 * time.Hour

// clearUp removes at its start, and then from time to time, what deletions left behind. What fails is done with the next
// clearing.
func (r *Researcher) clearUp(ctx context.Context) error {
	done := map[string]int{} // thread or run -> purges so far
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		next := r.options.Janitor
		if err := r.clearOnce(ctx, done); err != nil && ctx.Err() == nil {
			r.Log.Warn().Err(err).Msg("clearing up is incomplete, trying again")
			next = min(next, time.Minute)
		}
		pause.Reset(next)
	}
}

func (r *Researcher) clearOnce(ctx context.Context, done map[string]int) error {
	if _, err := r.Tail.CatchUp(ctx); err != nil {
		return err
	}
	threads, receipts := r.deleted(done)
	return errors.Join(r.clearThreads(ctx, threads, done), r.clearRuns(ctx, receipts, done), r.clearSpool(), r.clearLeft(ctx))
}

// clearLeft removes from the artifacts what no deletion finds: pieces without a name, and what was kept for answers that came to nothing while
// another run of their thread was open.
func (r *Researcher) clearLeft(ctx context.Context) error {
	swept, err := r.Artifacts.Sweep(ctx, r.options.Left, r.unwanted)
	if swept.Pieces > 0 {
		r.Log.Info().Int("puts", swept.Pieces).Msg("removed pieces of artifacts that nothing names")
	}
	if len(swept.Unwanted) == 0 {
		return err
	}
	if _, catchErr := r.Tail.CatchUp(ctx); catchErr != nil {
		return errors.Join(err, catchErr)
	}
	faults, removed := []error{err}, 0
	for _, ref := range swept.Unwanted {
		thread, _, _ := strings.Cut(ref.Ref, "/")
		if !r.unwanted(thread, ref) { // something was asked for meanwhile
			continue
		}
		if err := r.Artifacts.Delete(ctx, ref); err != nil {
			faults = append(faults, err)
			continue
		}
		removed++
	}
	if removed > 0 {
		r.Log.Info().Int("artifacts", removed).Msg("removed what was kept for answers that came to nothing")
	}
	return errors.Join(faults...)
}

// unwanted says whether an artifact without a name is left of an answer that came to nothing. Of a thread with an event that this version
// cannot read nothing is: that event may refer to it.
func (r *Researcher) unwanted(thread string, ref artifact.Ref) (unwanted bool) {
	r.Tail.ViewAll(func(n *notebook.Notebook) {
		unwanted = deletion.Unwanted(n.Thread(thread), ref) && readable(n, thread)
	})
	return unwanted
}

// readable says whether every event of a thread could be applied.
func readable(n *notebook.Notebook, thread string) bool {
	bad, count := n.Bad()
	if count > len(bad) { // whose the others are is not known
		return false
	}
	for _, b := range bad {
		if strings.Contains(b.Subject, "."+thread+".") {
			return false
		}
	}
	return true
}

// deleted lists the threads and the runs that were deleted and not purged often enough.
func (r *Researcher) deleted(done map[string]int) (threads []string, receipts []deletion.Receipt) {
	r.Tail.ViewAll(func(n *notebook.Notebook) {
		for _, t := range n.Threads() {
			if t.Deleted && done[t.ID] < purges {
				threads = append(threads, t.ID)
			}
			for _, id := range t.RunIDs {
				if t.Runs[id].Deleted && done[id] < purges {
					receipts = append(receipts, deletion.ReceiptOf(t, id))
				}
			}
		}
	})
	return threads, receipts
}

func (r *Researcher) clearThreads(ctx context.Context, threads []string, done map[string]int) error {
	gone := map[string]bool{}
	var faults []error
	for _, id := range threads {
		if err := deletion.Events(ctx, r.JS, id); err != nil {
			faults = append(faults, err)
			continue
		}
		gone[id] = true
	}
	if len(gone) > 0 {
		if err := pointCleared.Hit(ctx); err != nil {
			return err
		}
		if _, err := r.Artifacts.DeleteThreads(ctx, func(thread string) bool { return gone[thread] }); err != nil {
			return errors.Join(append(faults, err)...)
		}
	}
	for id := range gone {
		done[id]++
	}
	return errors.Join(faults...)
}

func (r *Researcher) clearRuns(ctx context.Context, receipts []deletion.Receipt, done map[string]int) error {
	var faults []error
	for _, receipt := range receipts {
		if err := deletion.PurgeRun(ctx, r.JS, r.Artifacts, receipt); err != nil {
			faults = append(faults, err)
			continue
		}
		done[receipt.Run]++
	}
	return errors.Join(faults...)
}

// clearSpool removes the files of runs that have ended and of threads that are gone. A thread that the stream does not
// know keeps them for a while: the notebook may be about to be restored, and the answer was paid.
func (r *Researcher) clearSpool() error {
	found, err := r.spool.list()
	for _, a := range found {
		ended, known := false, false
		r.Tail.View(a.thread, func(t *notebook.Thread) {
			ended, known = over(t, a.run), t.Deleted || t.Runs[a.run] != nil
		})
		if ended && (known || r.spool.age(a, r.Now()) > keepUnknown) {
			err = errors.Join(err, r.spool.removeAttempt(a))
		}
	}
	return err
}
