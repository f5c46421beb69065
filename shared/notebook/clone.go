package notebook

import (
	"maps"
	"slices"
)

// Clone copies what Evolve changes, so that a decision can look at where its events would lead.
func (t *Thread) Clone() *Thread {
	c := *t
	c.Ledger = t.Ledger.Clone()
	c.Runs = cloneMap(t.Runs, func(r Run) Run {
		r.Attempts = slices.Clone(r.Attempts)
		r.Failed = maps.Clone(r.Failed)
		r.Lost = maps.Clone(r.Lost)
		return r
	})
	c.RunIDs = slices.Clone(t.RunIDs)
	c.Sources = cloneMap(t.Sources, func(s Source) Source { return s })
	c.Cycles = slices.Clone(t.Cycles)
	for i, cycle := range t.Cycles {
		copied := *cycle
		copied.Runs = slices.Clone(cycle.Runs)
		copied.Lost = maps.Clone(cycle.Lost)
		copied.Closings = slices.Clone(cycle.Closings)
		for j, closing := range cycle.Closings {
			one := *closing
			one.Done, one.Failed = maps.Clone(closing.Done), maps.Clone(closing.Failed)
			copied.Closings[j] = &one
		}
		c.Cycles[i] = &copied
	}
	c.Questions = cloneMap(t.Questions, func(q Question) Question {
		q.Runs = slices.Clone(q.Runs)
		return q
	})
	c.QIDs = slices.Clone(t.QIDs)
	c.Facts = cloneMap(t.Facts, func(f Fact) Fact {
		f.Support = slices.Clone(f.Support)
		return f
	})
	c.FactIDs = slices.Clone(t.FactIDs)
	c.ByFingerprint = maps.Clone(t.ByFingerprint)
	c.Pairs = cloneMap(t.Pairs, func(p Pair) Pair { return p })
	c.PairIDs = slices.Clone(t.PairIDs)
	c.Links = slices.Clone(t.Links)
	return &c
}

func cloneMap[T any](m map[string]*T, clone func(T) T) map[string]*T {
	c := make(map[string]*T, len(m))
	for k, v := range m {
		copied := clone(*v)
		c[k] = &copied
	}
	return c
}
