package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
)

// readiness is what /readyz tells.
type readiness struct {
	Ready     bool
	Reasons   []string
	Dead      int
	BadEvents []struct {
		Seq            uint64
		Subject, Error string
	} `json:"bad_events"`
	BadCount  int   `json:"bad_count"`
	StoreFree int64 `json:"store_free"`
}

func (f *field) readiness() (status int, r readiness) {
	f.t.Helper()
	status, text, err := f.try(http.MethodGet, "/readyz", nil)
	require.NoError(f.t, err)
	require.NoError(f.t, json.Unmarshal(text, &r), "%s", text)
	return status, r
}

// idle waits until no worker has anything in hand or before it.
func (f *field) idle() {
	f.t.Helper()
	eventually(f.t, "the workers are idle", func() bool { return chaos.Drained(f.t.Context(), f.JS) == nil })
}

// letter is a dead letter as the API lists it.
type letter struct {
	ID, Worker, Reason, Subject string
	Seq                         uint64
}

func (f *field) letters() []letter {
	f.t.Helper()
	return call[list[letter]](f.api, http.StatusOK, http.MethodGet, base+"/dead?limit=500", nil).Items
}

// poison publishes a body that no worker can read on each subject, and gives the letters of it when every reader of the subjects has kept one.
func (f *field) poison(subjects ...string) []letter {
	f.t.Helper()
	wanted := 0
	seqs := map[uint64]bool{}
	for _, subject := range subjects {
		ack, err := f.JS.Publish(f.t.Context(), subject, []byte("{cut o"))
		require.NoError(f.t, err)
		seqs[ack.Sequence] = true
		wanted += readers()[kindOf(subject)]
	}
	var kept []letter
	eventually(f.t, "the poison is kept", func() bool {
		kept = slices.DeleteFunc(f.letters(), func(l letter) bool { return !seqs[l.Seq] })
		return len(kept) == wanted
	})
	return kept
}

func kindOf(subject string) string { return strings.Join(strings.SplitN(subject, ".", 3)[:2], ".") }

// readers counts the workers that read each kind of event.
func readers() map[string]int {
	n := map[string]int{}
	for _, d := range topology.Durables() {
		for _, filter := range d.Filters {
			n[strings.TrimSuffix(filter, ".>")]++
		}
	}
	return n
}

func TestPoisonOnEverySubjectIsKeptAndShownAndStopsNothing(t *testing.T) {
	t.Parallel()
	f := open(t, "MODEL_ENGINE=extractive")
	th := f.ask("Does poison stop anything?")
	f.researched(th.ID, nil)
	before := f.knows(th.ID)

	poisons := chaos.Poisons()
	dead, bad, n := 0, 0, 0
	for _, thread := range []string{th.ID, "nobody"} {
		for _, poison := range poisons {
			n++
			fill := strings.NewReplacer("%t", thread, "%i", fmt.Sprintf("poison-%d", n))
			_, err := f.JS.Publish(t.Context(), fill.Replace(poison[0]), []byte(fill.Replace(poison[1])))
			require.NoError(t, err)
			if !strings.Contains(poison[1], `"new":true`) { // those are well-formed, of a version that no worker has a step for
				dead += readers()[kindOf(poison[0])]
			}
			if !strings.Contains(poison[1], `"type":"ext.`) { // somebody else's
				bad++
			}
		}
	}
	require.Len(t, poisons, 8*4+3)
	f.idle()

	eventually(t, "everything is kept and shown", func() bool {
		status, r := f.readiness()
		return status == http.StatusOK && r.Ready && r.Dead == dead && r.BadCount == bad
	})
	_, r := f.readiness()
	require.NotEmpty(t, r.BadEvents)
	for _, event := range r.BadEvents {
		require.NotEmpty(t, event.Error, event.Subject)
	}
	letters := f.letters()
	require.Len(t, letters, dead)
	for _, l := range letters {
		require.NotEmpty(t, l.Reason)
		require.Contains(t, l.Subject, ".poisoned.0")
	}

	// None of it names a run or a cycle that there is: it cannot be put back, which changes nothing, and is passed.
	for _, l := range letters {
		want := http.StatusConflict
		if strings.Contains(l.Subject, ".nobody.") {
			want = http.StatusNotFound
		}
		refused := call[refusal](f.api, want, http.MethodPost, base+"/dead/"+l.ID+"/retry", nil)
		require.Contains(t, refused.Detail, "POST /api/v1/dead/"+l.ID+"/pass")
	}
	for _, l := range letters {
		status, text, err := f.try(http.MethodPost, base+"/dead/"+l.ID+"/pass", nil)
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, status, "%s", text) // gone with another letter of its message
	}
	for deadline := time.Now().Add(patience); ; { // only the first are listed
		_, r = f.readiness()
		if r.BadCount == 0 {
			break
		}
		require.True(t, time.Now().Before(deadline), "what was passed does not come again")
		require.NotEmpty(t, r.BadEvents)
		for _, event := range r.BadEvents {
			call[any](f.api, http.StatusOK, http.MethodPost, fmt.Sprintf("%s/bad-events/%d/pass", base, event.Seq), nil)
		}
	}
	require.Zero(t, r.Dead)

	require.Equal(t, before, f.knows(th.ID), "what was known is untouched")
	f.completed(f.researched(th.ID, map[string]any{"mode": "balanced"}).ID, 1)
	f.spent(th.ID, 600)
	other := f.ask("And another one?")
	f.completed(f.researched(other.ID, nil).ID, 1)
	require.NoError(t, f.Restart(t.Context(), "gateway", "researcher", "distiller", "judge", "briefer"))
	require.NoError(t, f.Ready(t.Context()))
	third := f.ask("And after a restart?")
	f.completed(f.researched(third.ID, nil).ID, 1)
	f.idle()
	_, r = f.readiness()
	require.Zero(t, r.BadCount, "what was passed stays passed")
	require.Zero(t, r.Dead)
	require.Empty(t, f.Unasked(), "nobody fell over")
}

// Poison that bears the name of what there is changes nothing of it. Put back, it asks for the step of its worker again, and buys nothing that is bought.
func TestPoisonThatNamesARunIsPutBack(t *testing.T) {
	t.Parallel()
	f := open(t, "MODEL_ENGINE=extractive")
	released := make(chan struct{})
	require.NoError(t, f.provider.Set(standin.Answer{}, standin.Answer{Gate: released, After: 2000}, standin.Answer{Status: http.StatusPaymentRequired, Body: "{}"}))
	th := f.ask("Is anything lost by poison?")
	retry := func(want int, l letter) (back struct{ Stage, Run string }) {
		t.Helper()
		status, text, err := f.try(http.MethodPost, base+"/dead/"+l.ID+"/retry", nil)
		require.NoError(t, err)
		require.Equal(t, want, status, "%s of %s: %s", l.Subject, l.Worker, text)
		require.NoError(t, json.Unmarshal(text, &back))
		return back
	}
	// While it is bought: the call goes on, and its run is neither failed nor bought once more.
	bought := f.request(th.ID, nil)
	sent(t, f.provider, 2000)
	for _, kind := range []string{"run.requested", "run.completed", "stage.retried"} {
		for _, l := range f.poison(kind + "." + th.ID + "." + bought.ID + ".0") {
			require.Equal(t, "run", retry(http.StatusAccepted, l).Stage, "of a run that is not over nothing else can be asked")
		}
	}
	close(released)
	f.settled(th.ID)
	f.completed(bought.ID, 1)
	f.idle()
	f.spent(th.ID, 250)
	require.Equal(t, 1, f.provider.Stats().Calls)
	before := all[fact](f.api, "/threads/"+th.ID+"/facts")

	// When all is done: what a model makes is made again; of a run, and of what autopilot decided, there is nothing to be done.
	again := map[string]string{"distil": "distill", "judge": "judge", "brief": "brief"}
	for kind := range readers() {
		entity := bought.ID
		if kind == "thread.settled" {
			entity = "1"
		}
		var others []letter
		for _, l := range f.poison(kind + "." + th.ID + "." + entity + ".0") {
			if again[l.Worker] == "" {
				retry(http.StatusConflict, l)
				others = append(others, l)
				continue
			}
			require.Equal(t, again[l.Worker], retry(http.StatusAccepted, l).Stage)
			f.settled(th.ID)
			f.idle()
		}
		if len(others) > 0 {
			call[any](f.api, http.StatusOK, http.MethodPost, base+"/dead/"+others[0].ID+"/pass", nil)
		}
	}
	f.spent(th.ID, 250)
	require.Equal(t, before, all[fact](f.api, "/threads/"+th.ID+"/facts"))

	// A run that failed is asked anew, and reserved once, though two put it back.
	failed := f.researched(th.ID, nil)
	require.Equal(t, "failed", failed.Status)
	l := f.poison("run.requested." + th.ID + "." + failed.ID + ".0")[0]
	anew := retry(http.StatusAccepted, l)
	require.Equal(t, "run", anew.Stage)
	f.settled(th.ID)
	f.completed(anew.Run, 1)
	f.spent(th.ID, 500)

	// A cycle whose end nobody has worked on, and which autopilot has not seen.
	require.True(t, f.Stop("briefer"))
	closing := f.request(th.ID, nil)
	eventually(t, "the run has its verdicts", func() bool {
		return slices.ContainsFunc(f.run(closing.ID).Stages, func(s struct{ Name, State, Engine, Error string }) bool {
			return s.Name == "judge" && s.State == "done"
		})
	})
	l = f.poison(fmt.Sprintf("thread.settled.%s.%d.0", th.ID, f.thread(th.ID).Cycle))[0]
	require.Equal(t, "autopilot", l.Worker)
	require.Equal(t, "close", retry(http.StatusAccepted, l).Stage)
	require.True(t, f.Continue("briefer"))
	f.settled(th.ID)
	f.completed(closing.ID, 1)
	f.spent(th.ID, 750)
	f.idle()
	_, r := f.readiness()
	require.Zero(t, r.Dead)
	require.Zero(t, r.BadCount, "whose last letter is dealt with is dealt with itself")
	require.Empty(t, f.Unasked(), "nobody fell over")
}

func TestAStaleResearcherIsRefusedAndItsCallClosed(t *testing.T) {
	t.Parallel()
	f := openWith(t, chaos.Layout{Workers: map[string]int{"researcher": 2}, Env: []string{"MODEL_ENGINE=extractive"}})
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	require.NoError(t, f.provider.Set(standin.Answer{}, standin.Answer{Gate: never, After: 2000}))
	tape := f.follow()
	th := f.ask("Who is stale?")
	requested := f.request(th.ID, nil)
	sent(t, f.provider, 2000)
	var claim struct{ Holder string }
	require.NoError(t, json.Unmarshal(tape.awaitRun("attempt.started", requested.ID).Data, &claim))
	stale := ""
	for _, name := range []string{"researcher", "researcher-2"} {
		if strings.HasSuffix(claim.Holder, fmt.Sprintf(":%d", f.PID(name))) {
			stale = name
		}
	}
	require.NotEmpty(t, stale, claim.Holder)
	require.True(t, f.Stop(stale))
	f.settled(th.ID)
	done := f.completed(requested.ID, 2)
	require.Equal(t, "lost", done.Attempts[0].Outcome)
	require.Equal(t, 1, f.provider.Stats().InFlight, "the stopped one still has its connection")

	require.True(t, f.Continue(stale))
	awaitStats(t, f.provider, func(s standin.Stats) bool { return s.InFlight == 0 })
	stats := f.provider.Stats()
	require.Equal(t, 1, stats.Left, "it closed its connection")
	require.Equal(t, 1, stats.Whole)
	require.Equal(t, 2, stats.Calls)
	f.idle()
	f.spent(th.ID, 250)
	f.completed(requested.ID, 2)
	completions := 0
	for _, n := range tape.until(f.thread(th.ID).Position) {
		if n.Run == requested.ID && n.kind() == "run.completed" {
			completions++
		}
	}
	require.Equal(t, 1, completions)
}
