package judging

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// scene is what the judge of a run looks at: its facts, and all that came before one of them. It is pure data.
type scene struct {
	thread    string
	newcomers []fact          // active facts of the run, in the order of the stream
	elders    []fact          // everything that a newcomer may be compared with, newcomers too
	judged    map[string]bool // what was asked before, by asked
}

// fact is a fact with its place in the stream.
type fact struct {
	notebook.Fact
	thread    string
	retrieved time.Time
	curated   bool
	place     place
}

// place orders facts: by the sequence that added them, then as that event lists them.
type place struct {
	seq  uint64
	rank int
}

func (p place) before(q place) bool { return p.compare(q) < 0 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.seq, q.seq), cmp.Compare(p.rank, q.rank))
}

// key names a fact over all threads.
func (f fact) key() string { return f.thread + "/" + f.ID }

// look takes what a run's judge needs from the notebook: the run's own thread, and the live facts of all others if it is live too.
func look(n *notebook.Notebook, thread, run string) scene {
	own := n.Thread(thread)
	s := scene{thread: thread, judged: map[string]bool{}}
	facts := factsOf(own)
	for _, f := range facts {
		if f.Run == run && f.Active() {
			s.newcomers = append(s.newcomers, f)
		}
	}
	if len(s.newcomers) == 0 {
		return s
	}
	slices.SortFunc(s.newcomers, func(a, b fact) int { return a.place.compare(b.place) })
	latest := s.newcomers[len(s.newcomers)-1].place
	for _, f := range facts {
		dismissed := f.Dismissed && f.Root == "" && !f.Removed // what is like a dismissed fact is dismissed with it
		if (f.Active() || dismissed) && !latest.before(f.place) {
			s.elders = append(s.elders, f)
		}
	}
	for _, p := range own.Pairs {
		if !lapsed(own, p) {
			s.judged[asked(p.Elder, p.ElderFingerprint, p.Newer, p.NewerFingerprint)] = true
		}
	}
	if replays(own) {
		return s
	}
	for _, t := range n.Threads() {
		if t.ID == thread || !t.Exists() || replays(t) {
			continue
		}
		for _, f := range factsOf(t) {
			if f.Active() && !f.Replayed && f.place.before(latest) {
				s.elders = append(s.elders, f)
			}
		}
	}
	return s
}

// lapsed says whether a verdict has lost its effect: its newcomer, dropped as a duplicate then, was removed by a rebuild and found again by another, so that
// it counts until it is dropped again.
func lapsed(t *notebook.Thread, p *notebook.Pair) bool {
	newer := t.Facts[p.Newer]
	return p.Relation == event.Duplicate && newer != nil && newer.Active() && newer.Seq > p.Seq
}

// replays says whether a thread's facts come from recorded streams: they are judged among themselves.
func replays(t *notebook.Thread) bool { return t.Replay != nil && *t.Replay }

// factsOf gives all facts of a thread with their places.
func factsOf(t *notebook.Thread) []fact {
	facts := make([]fact, 0, len(t.FactIDs))
	for _, id := range t.FactIDs {
		f := t.Facts[id]
		retrieved := f.At
		if r := t.Runs[f.Run]; r != nil && !r.Ended.IsZero() {
			retrieved = r.Ended
		}
		facts = append(facts, fact{Fact: *f, thread: t.ID, retrieved: retrieved, curated: f.Curated(), place: place{f.Seq, f.Rank}})
	}
	return facts
}

// asked names a question that was put: two facts, as they were then.
func asked(elder, elderPrint, newer, newerPrint string) string {
	return strings.Join([]string{elder, elderPrint, newer, newerPrint}, "/")
}

// pair is a newcomer and an elder that are alike.
type pair struct {
	elder, newer fact
	similarity   float64 // cosine
}

func (p pair) sameText() bool { return p.elder.Fingerprint == p.newer.Fingerprint }

// texts names the two texts of a pair in either order.
func (p pair) texts() string {
	a, b := p.elder.Fingerprint, p.newer.Fingerprint
	return min(a, b) + "/" + max(a, b)
}

// similarity finds the elders that are at least floor similar to a newcomer; allowed says which may be found.
type similarity func(newer fact, floor float64, allowed func(elder fact) bool) []pair

// nominate gives the pairs to judge, the most similar first: each newcomer with every elder that is at least floor similar and came
// before it. Two texts meet once, in whatever order and in however many threads they stand; those of the own thread come first. What
// was judged before about the same texts is left out.
func (s scene) nominate(similar similarity, floor float64) []pair {
	var pairs []pair
	for _, newer := range s.newcomers {
		pairs = append(pairs, similar(newer, floor, func(elder fact) bool {
			return elder.place.before(newer.place) && elder.key() != newer.key() &&
				!s.judged[asked(elder.ID, elder.Fingerprint, newer.ID, newer.Fingerprint)]
		})...)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(
			cmp.Compare(b.similarity, a.similarity),
			cmp.Compare(s.distance(a), s.distance(b)),
			a.newer.place.compare(b.newer.place),
			a.elder.place.compare(b.elder.place),
			strings.Compare(a.elder.key(), b.elder.key()),
		)
	})
	met := map[string]bool{}
	return slices.DeleteFunc(pairs, func(p pair) bool {
		again := met[p.texts()]
		met[p.texts()] = true
		return again
	})
}

// distance is 0 for a pair inside the thread and 1 for one across.
func (s scene) distance(p pair) int {
	if p.elder.thread == s.thread {
		return 0
	}
	return 1
}
