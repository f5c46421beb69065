package judging

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// book is a notebook that is written by hand.
type book struct {
	t require.TestingT
	*notebook.Notebook
	seq uint64
}

func newBook(t require.TestingT) *book { return &book{t: t, Notebook: notebook.NewNotebook()} }

func (b *book) add(thread, entity string, n int, data event.Data) {
	b.seq++
	at := time.Date(2026, 5, 1, 0, 0, int(b.seq), 0, time.UTC)
	e := event.Event{ID: fmt.Sprintf("e%d", b.seq), Type: event.TypeOf(data), Time: at, Thread: thread, Entity: entity, N: n, Data: data}
	body, err := event.Marshal(e)
	require.NoError(b.t, err)
	_, applied := b.Apply(notebook.Message{Subject: e.Subject(), Data: body, Seq: b.seq, Time: at})
	require.True(b.t, applied, "%s", body)
}

func (b *book) thread(id string) {
	b.add(id, "0", 0, event.ThreadCreated{Question: "?", Settings: event.Settings{Provider: event.Tabstack, Mode: event.Fast, Engine: "extractive"}})
}

// run adds a run with its facts; each statement is a fact.
func (b *book) run(thread, run string, replay bool, statements ...string) {
	cycles := len(b.Thread(thread).Cycles)
	b.add(thread, run, 0, event.RunRequested{Provider: event.Tabstack, Cycle: cycles + 1, CycleSize: 1, RunKind: event.KindManual, Replay: replay})
	b.add(thread, run, 0, event.RunCompleted{})
	b.distilled(thread, run, 0, replay, statements...)
}

func (b *book) distilled(thread, run string, n int, replay bool, statements ...string) {
	out := event.FactsDistilled{Engine: "extractive", Replayed: replay}
	for _, s := range statements {
		out.Facts = append(out.Facts, event.Fact{ID: id(thread, s), Fingerprint: text.Fingerprint(s), Statement: s})
	}
	b.add(thread, run, n, out)
}

func (b *book) judged(thread, run string, verdicts ...event.Verdict) {
	out := event.ContradictionsFound{Verdicts: verdicts, Engine: "extractive"}
	for _, v := range verdicts {
		if v.Relation == event.Duplicate && v.ElderThread == "" {
			out.Drops = append(out.Drops, event.Drop{Fact: v.Newer, Root: v.Elder})
		}
	}
	b.add(thread, run, 0, out)
}

func id(thread, statement string) string { return notebook.FactID(thread, text.Fingerprint(statement)) }

func verdict(thread, elder, newer, relation string) event.Verdict {
	return event.Verdict{
		Pair: notebook.PairID(id(thread, elder), id(thread, newer)), Elder: id(thread, elder), ElderFingerprint: text.Fingerprint(elder),
		Newer: id(thread, newer), NewerFingerprint: text.Fingerprint(newer), Relation: relation,
	}
}

// alike says that all texts are alike, those in scores more so or less.
func alike(elders []fact, scores map[string]float64) similarity {
	return func(newer fact, floor float64, allowed func(fact) bool) (pairs []pair) {
		for _, elder := range elders {
			score, known := scores[elder.Statement+"|"+newer.Statement]
			if !known {
				score = 0.9
			}
			if score >= floor && allowed(elder) {
				pairs = append(pairs, pair{elder: elder, newer: newer, similarity: score})
			}
		}
		return pairs
	}
}

func nominated(s scene, scores map[string]float64) []string {
	names := []string{}
	for _, p := range s.nominate(alike(s.elders, scores), 0.7) {
		names = append(names, fmt.Sprintf("%s:%s < %s", p.elder.thread, p.elder.Statement, p.newer.Statement))
	}
	return names
}

func TestAFactIsComparedWithThoseBeforeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write  func(b *book)
		scores map[string]float64
		want   []string
	}{
		"of its own run": {
			write: func(b *book) { b.run("t", "r", false, "a", "b", "c") },
			want:  []string{"t:a < b", "t:a < c", "t:b < c"},
		},
		"of an earlier run, not of a later one": {
			write: func(b *book) {
				b.run("t", "q", false, "x")
				b.run("t", "r", false, "a")
				b.run("t", "s", false, "y")
			},
			want: []string{"t:x < a"},
		},
		"of other threads, not of later facts there": {
			write: func(b *book) {
				b.thread("u")
				b.run("u", "q", false, "x")
				b.run("t", "r", false, "a")
				b.run("u", "s", false, "y")
			},
			want: []string{"u:x < a"},
		},
		"the most similar first, those below the floor not": {
			write: func(b *book) {
				b.run("t", "q", false, "x", "y", "z")
				b.run("t", "r", false, "a")
			},
			scores: map[string]float64{"x|a": 0.8, "y|a": 0.69, "z|a": 0.95},
			want:   []string{"t:z < a", "t:x < a"},
		},
		"a live fact not against a replayed one": {
			write: func(b *book) {
				b.thread("u")
				b.run("u", "q", true, "x")
				b.run("t", "r", false, "a")
			},
			want: []string{},
		},
		"a replayed fact inside its thread only": {
			write: func(b *book) {
				b.thread("u")
				b.run("u", "q", true, "x")
				b.thread("v")
				b.run("v", "q2", false, "y")
				b.run("t", "q3", true, "z")
				b.run("t", "r", true, "a")
			},
			want: []string{"t:z < a"},
		},
		"not with what was dropped": {
			write: func(b *book) {
				b.run("t", "q", false, "x", "y")
				b.judged("t", "q", verdict("t", "x", "y", event.Duplicate))
				b.run("t", "r", false, "a")
			},
			want: []string{"t:x < a"},
		},
		"not again on the same texts": {
			write: func(b *book) {
				b.run("t", "q", false, "x", "y")
				b.run("t", "r", false, "a")
				b.judged("t", "r", verdict("t", "x", "a", event.Distinct))
				b.add("t", "r", 1, event.StageRetried{Stage: event.StageJudge, By: "person"})
			},
			want: []string{"t:y < a"},
		},
		"again, if it was a duplicate that a rebuild removed and another found again": {
			write: func(b *book) {
				b.run("t", "q", false, "x", "y")
				b.run("t", "r", false, "a")
				b.judged("t", "r", verdict("t", "x", "a", event.Duplicate), verdict("t", "y", "a", event.Distinct))
				b.add("t", "r", 1, event.StageRetried{Stage: event.StageDistill, By: "person"})
				b.add("t", "r", 1, event.FactsDistilled{Removed: []string{id("t", "a")}, Engine: "extractive"})
				b.add("t", "r", 2, event.StageRetried{Stage: event.StageDistill, By: "person"})
				b.distilled("t", "r", 2, false, "a")
			},
			want: []string{"t:x < a"},
		},
		"two texts once, the own thread first": {
			write: func(b *book) {
				b.thread("u")
				b.run("u", "q", false, "x")
				b.run("t", "q2", false, "x")
				b.run("t", "r", false, "a")
			},
			want: []string{"t:x < a"},
		},
		"a thread that is gone has none": {
			write: func(b *book) {
				b.thread("u")
				b.run("u", "q", false, "x")
				b.add("u", "0", 0, event.ThreadDeleted{})
				b.run("t", "r", false, "a")
			},
			want: []string{},
		},
		"after a rebuild, those that came again are elder than the new": {
			write: func(b *book) {
				b.run("t", "r", false, "b")
				b.add("t", "r", 1, event.StageRetried{Stage: event.StageDistill, By: "person"})
				b.distilled("t", "r", 1, false, "a")
			},
			want: []string{"t:b < a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.thread("t")
			c.write(b)
			require.Equal(t, c.want, nominated(look(b.Notebook, "t", "r"), c.scores))
		})
	}
}

func TestADismissedElderOfTheThreadStillCounts(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.thread("t")
	b.run("t", "q", false, "x", "y")
	b.Thread("t").Facts[id("t", "x")].Dismissed = true
	b.Thread("t").Facts[id("t", "y")].Removed = true
	b.thread("u")
	b.run("u", "q2", false, "z")
	b.Thread("u").Facts[id("u", "z")].Dismissed = true
	b.run("t", "r", false, "a")
	require.Equal(t, []string{"t:x < a"}, nominated(look(b.Notebook, "t", "r"), nil))
}

func TestTheDateOfAStatementIsThatOfItsSourceElseOfItsRetrieval(t *testing.T) {
	t.Parallel()
	published := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	f := fact{retrieved: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	f.Statement = "a"
	require.Equal(t, "2026-05-01", f.statement().Date)
	f.Source = &event.Source{Title: "The source"}
	require.Equal(t, "2026-05-01", f.statement().Date)
	f.Source.PublishedAt = &published
	require.Equal(t, "2026-03-04", f.statement().Date)
	require.Equal(t, "The source", f.statement().SourceTitle)
}

// Over any notebook: an elder is before its newcomer, no two texts meet twice, and replayed and live facts do not meet.
func TestNominationsOfAnyNotebook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBook(t)
		replayed := map[string]bool{}
		for _, thread := range []string{"t", "u", "v"} {
			b.thread(thread)
			replayed[thread] = rapid.Bool().Draw(t, "replayed")
		}
		var runs [][2]string
		for i := range rapid.IntRange(1, 8).Draw(t, "runs") {
			thread := rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "thread")
			var fresh []string
			for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 4, rapid.ID).Draw(t, "facts") {
				if b.Thread(thread).ByFingerprint[text.Fingerprint(s)] == "" {
					fresh = append(fresh, s)
				}
			}
			run := fmt.Sprintf("r%d", i)
			b.run(thread, run, replayed[thread], fresh...)
			runs = append(runs, [2]string{thread, run})
		}
		for _, r := range runs {
			s := look(b.Notebook, r[0], r[1])
			met := map[string]bool{}
			for _, p := range s.nominate(alike(s.elders, nil), 0.7) {
				if !p.elder.place.before(p.newer.place) || p.newer.Run != r[1] || met[p.texts()] || replayed[p.elder.thread] && p.elder.thread != r[0] || replayed[r[0]] && p.elder.thread != r[0] {
					t.Fatalf("%s: %+v", r[1], p)
				}
				met[p.texts()] = true
			}
		}
	})
}
