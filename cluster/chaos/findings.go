package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// findings are what is wrong at the end; there should be none.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// stream compares what the stream holds now with what was seen of it: nothing but what belongs to a deleted thread may be gone, and
// nothing may have changed.
func (f *findings) stream(ctx context.Context, js jetstream.JetStream, r *record) error {
	stream, err := js.Stream(ctx, topology.Notebook)
	if err != nil {
		return err
	}
	again := newRecord(js)
	reading, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- again.projector.Run(reading) }()
	err = again.projector.WaitFor(ctx, stream.CachedInfo().State.LastSeq)
	stop()
	if err := errors.Join(err, <-done); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	now := map[uint64]notebook.Message{}
	for _, m := range again.messages {
		now[m.Seq] = m
	}
	deleted := map[string]bool{}
	for _, t := range r.notebook.Threads() {
		deleted[t.ID] = t.Deleted
	}
	next := uint64(1)
	for _, m := range r.messages {
		if m.Seq != next {
			// Only a purge that was faster than this reader explains it.
			if !slices.Contains(slices.Collect(maps.Values(deleted)), true) {
				f.add("sequences %d to %d were never seen", next, m.Seq-1)
			}
		}
		next = m.Seq + 1
		kept, there := now[m.Seq]
		switch {
		case there && (kept.Subject != m.Subject || string(kept.Data) != string(m.Data)):
			f.add("sequence %d was %s and is %s", m.Seq, m.Subject, kept.Subject)
		case !there && !deleted[strings.Split(m.Subject+"...", ".")[2]]:
			f.add("%s at %d is gone", m.Subject, m.Seq)
		}
		delete(now, m.Seq)
	}
	for seq, m := range now {
		f.add("%s at %d is in the stream and was not seen", m.Subject, seq)
	}
	return nil
}

// story checks the events of every thread one after the other: what must be there once is there once, and the money is right at each
// step.
func (f *findings) story(r *record) (spent map[string]int) {
	type account struct{ budget, spent, reserved int }
	accounts, costs, ended := map[string]*account{}, map[string]int{}, map[string]string{}
	once := map[string]uint64{}
	spent = map[string]int{}
	of := func(thread string) *account {
		if accounts[thread] == nil {
			accounts[thread] = &account{}
		}
		return accounts[thread]
	}
	for _, e := range r.events {
		if _, unknown := e.Data.(event.Unknown); unknown {
			continue // poison, or somebody's own: it has no effect
		}
		a, run := of(e.Thread), e.Thread+" "+e.Entity
		switch d := e.Data.(type) {
		case event.ThreadCreated:
			a.budget = d.Settings.Budget
		case event.ThreadConfigured:
			if d.Budget != nil {
				a.budget = *d.Budget
			}
		case event.RunRequested:
			a.reserved += d.Cost
			costs[run] = d.Cost
			if a.reserved+a.spent > a.budget {
				f.add("thread %s: %d reserved and %d spent of %d at %d", e.Thread, a.reserved, a.spent, a.budget, e.Seq)
			}
		case event.RunCompleted, event.RunFailed:
			if ended[run] != "" {
				f.add("run %s ended as %s, and again as %s at %d", run, ended[run], e.Kind(), e.Seq)
			}
			ended[run] = e.Kind()
			a.reserved -= costs[run]
			if completed, ok := d.(event.RunCompleted); ok {
				a.spent += completed.Cost
				if completed.Cost != costs[run] {
					f.add("run %s was to cost %d and cost %d", run, costs[run], completed.Cost)
				}
			} else if failed := d.(event.RunFailed); failed.Cost != 0 {
				f.add("run %s failed and cost %d", run, failed.Cost)
			}
		case event.ThreadDeleted:
			if d.Spent != a.spent && !r.missed(e.Thread, e.Seq) {
				f.add("thread %s was deleted with %d spent, and its runs cost %d", e.Thread, d.Spent, a.spent)
			}
		}
		switch e.Kind() {
		case "attempt.started", "attempt.failed", "facts.distilled", "contradictions.found", "brief.written", "coverage.mapped", "questions.proposed", "thread.settled", "thread.deleted":
			key := fmt.Sprintf("%s %s %s %d", e.Kind(), e.Thread, e.Entity, e.N)
			if before := once[key]; before != 0 {
				f.add("%s is at %d and at %d", key, before, e.Seq)
			}
			once[key] = e.Seq
		}
	}
	for run := range costs {
		thread, _, _ := strings.Cut(run, " ")
		if ended[run] == "" && r.notebook.Thread(thread).Exists() {
			f.add("run %s was requested and never ended", run)
		}
	}
	for thread, a := range accounts {
		spent[thread] = a.spent
		t := r.notebook.Thread(thread)
		if t.Exists() && (a.reserved != 0 || t.Ledger.Spent != a.spent || t.Ledger.Held() != 0) {
			f.add("thread %s: %d spent and %d reserved by its events, %d and %d by its ledger", thread, a.spent, a.reserved, t.Ledger.Spent, t.Ledger.Held())
		}
	}
	for _, id := range r.twice {
		f.add("two messages have one id: %s", id)
	}
	return spent
}

// promises checks that whatever was accepted is there.
func (f *findings) promises(promises []promise, r *record) {
	there := map[string]bool{}
	for _, e := range r.events {
		there[e.Kind()+" "+e.Thread+" "+e.Entity] = true
	}
	for _, p := range promises {
		if !there[p.kind+" "+p.thread+" "+p.entity] && (p.kind == "thread.deleted" || !r.notebook.Thread(p.thread).Deleted) {
			f.add("%s was accepted, and %s of thread %s, %s is not in the stream", p.what, p.kind, p.thread, p.entity)
		}
	}
}

// attempts checks for each run that no attempt follows one whose whole answer had been kept.
func (f *findings) attempts(r *record) {
	settled := map[string]bool{}
	for _, e := range r.events {
		run := e.Thread + " " + e.Entity
		switch e.Data.(type) {
		case event.RunCompleted, event.RunFailed:
			settled[run] = true
		case event.AttemptStarted:
			if settled[run] {
				f.add("attempt %d of run %s was started after its end, at %d", e.N, run, e.Seq)
			}
		}
	}
}
