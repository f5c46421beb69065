package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/event"
)

// Payments are what became of the provider's answers, beside those that were kept.
type Payments struct {
	Rebought []Explained // whole answers that came to nothing by a fault, so that they were bought again
	Overlaps []Explained // calls that were made while another was open, by a fault
	Void     int         // whole answers that a person did not want any more: cancelled, or of a deleted thread
}

// Explained is a call that should not have been necessary, or not at that time, and the fault that it is put down to.
type Explained struct {
	Call string // which one, for people
	By   Fault
}

// String is both in one line.
func (e Explained) String() string { return e.Call + ": " + e.By.String() }

// paid compares what the provider delivered with what was kept, one call after the other. A whole answer that was not kept, and a call
// that was made while another was open, need a fault that can have brought it about.
func (f *findings) paid(r *record, calls []standin.Call, e evidence) (p Payments) {
	attempts := attemptsOf(r.events)
	strangers := match(attempts, calls)
	if gone := r.purgedUnseen(); !gone {
		for _, c := range strangers {
			f.add("call %d is of no attempt that was started", c.N)
		}
	} else { // theirs were gone before they were seen here
		p.Void += len(slices.DeleteFunc(slices.Clone(strangers), func(c standin.Call) bool { return !whole(c) }))
	}
	for _, a := range attempts {
		switch bought := a.call != nil && whole(*a.call); {
		case a.kept && !bought:
			f.add("%s is completed, and the provider gave it no whole answer", a)
		case a.kept || !bought:
		case a.void:
			p.Void++
		default:
			by, explained := e.destroyed(a)
			if !explained {
				f.add("%s brought a whole answer that was not kept, and nothing had been done to %s, to the bus or to the disk that explains it", a, a.holder)
				continue
			}
			p.Rebought = append(p.Rebought, Explained{a.String(), by})
		}
	}
	for _, pair := range overlaps(attempts, strangers) {
		by, explained := e.overlapped(pair)
		if !explained {
			f.add("%s was made while %s was open, and nobody had been stopped or cut off", pair.second, pair.first)
			continue
		}
		p.Overlaps = append(p.Overlaps, Explained{fmt.Sprintf("%s while %s was open", pair.second, pair.first), by})
	}
	return p
}

// attempt is one of a run, as the stream tells of it, and the call that was made for it.
type attempt struct {
	thread, run string
	n           int
	asked       asked
	holder      string // which process, as it names itself: with its process id at the end
	started     time.Time
	gone        time.Time // from when on nobody would have used its answer: the next attempt, or the end of the run; zero for never
	kept        bool      // its answer is the run's
	void        bool      // a person wanted the run no more
	call        *standin.Call
}

// asked is by what a call is known to the provider.
type asked struct {
	Query string `json:"query"`
	Mode  string `json:"mode"`
}

func (a *attempt) String() string {
	what := fmt.Sprintf("attempt %d of run %s by %s", a.n, a.run, a.holder)
	if a.thread == "" {
		what = "an attempt that was purged"
	}
	if a.call == nil {
		return what
	}
	return fmt.Sprintf("call %d (%s)", a.call.N, what)
}

// pid is the process that made it; 0 when nobody knows.
func (a *attempt) pid() int {
	id, err := strconv.Atoi(a.holder[strings.LastIndexByte(a.holder, ':')+1:])
	if err != nil {
		return 0
	}
	return id
}

// attemptsOf lists the attempts that events tell of, but for those of replays, in the order of their start.
func attemptsOf(events []event.Event) (all []*attempt) {
	runs, asks := map[string][]*attempt{}, map[string]event.RunRequested{}
	end := func(run string, at time.Time, void bool) {
		for i, a := range runs[run] {
			if a.gone.IsZero() {
				a.gone, a.void = at, void && i == len(runs[run])-1
			}
		}
	}
	for _, e := range events {
		run := e.Thread + " " + e.Entity
		switch d := e.Data.(type) {
		case event.RunRequested:
			asks[run] = d
		case event.AttemptStarted:
			end(run, e.Stored, false)
			if asks[run].Replay {
				continue
			}
			a := &attempt{thread: e.Thread, run: e.Entity, n: e.N, asked: asked{asks[run].Text, asks[run].Mode}, holder: d.Holder, started: e.Stored}
			runs[run], all = append(runs[run], a), append(all, a)
		case event.AttemptFailed:
			end(run, e.Stored, false)
		case event.RunCompleted:
			for _, a := range runs[run] {
				a.kept = a.n == d.Attempt
			}
			end(run, e.Stored, false)
		case event.RunFailed:
			end(run, e.Stored, d.Code == event.CodeCancelled || d.Code == event.CodeWithdrawn)
		case event.ThreadDeleted:
			for other := range runs {
				if strings.HasPrefix(other, e.Thread+" ") {
					end(other, e.Stored, true)
				}
			}
		}
	}
	return all
}

// match finds the call of each attempt, and gives those that are of none. A call does not say for which attempt it was made, but what it
// asks, and each attempt makes at most one, after its start. Those whose answers were kept are found first; each other call is of the
// last attempt before it that has none.
func match(attempts []*attempt, calls []standin.Call) (strangers []standin.Call) {
	calls = slices.SortedFunc(slices.Values(calls), func(a, b standin.Call) int { return a.Started.Compare(b.Started) })
	about, taken := make([]asked, len(calls)), make([]bool, len(calls))
	for i, c := range calls {
		_ = json.Unmarshal([]byte(c.Body), &about[i]) // what cannot be read is of no attempt
	}
	for i, c := range slices.Backward(calls) { // of two by one attempt, the last was kept
		if !whole(c) {
			continue
		}
		var of *attempt // of those that may have made it the one that started last: the others may have made an earlier one
		for _, a := range attempts {
			if a.kept && a.call == nil && about[i] == a.asked && c.Started.After(a.started) && c.Started.Before(a.gone) && (of == nil || a.started.After(of.started)) {
				of = a
			}
		}
		if of != nil {
			of.call, taken[i] = &c, true
		}
	}
	for i, c := range calls {
		if taken[i] {
			continue
		}
		var of *attempt
		for _, a := range attempts {
			if a.call == nil && about[i] == a.asked && a.started.Before(c.Started) {
				of = a
			}
		}
		if of == nil {
			strangers = append(strangers, c)
			continue
		}
		of.call = &c
	}
	return strangers
}

// whole says whether a call brought a whole recorded stream, whatever became of its connection afterwards.
func whole(c standin.Call) bool {
	mode := "fast"
	if strings.Contains(c.Body, `"balanced"`) {
		mode = "balanced"
	}
	stream, err := fixtures.Stream("tabstack", mode)
	return err == nil && c.Status == http.StatusOK && c.Sent >= int64(len(stream))
}

// purgedUnseen says whether a deleted thread had events that were purged before they were seen.
func (r *record) purgedUnseen() bool {
	return slices.ContainsFunc(r.events, func(e event.Event) bool {
		_, deleted := e.Data.(event.ThreadDeleted)
		return deleted && r.missed(e.Thread, e.Seq)
	})
}

// overlap is two calls, the first of which was still open when the second was made.
type overlap struct{ first, second *attempt }

// overlaps finds all of them, by the time of the second.
func overlaps(attempts []*attempt, strangers []standin.Call) (pairs []overlap) {
	var all []*attempt
	for _, a := range attempts {
		if a.call != nil {
			all = append(all, a)
		}
	}
	for _, c := range strangers {
		all = append(all, &attempt{started: c.Started, call: &c})
	}
	slices.SortFunc(all, func(a, b *attempt) int {
		return cmp.Or(a.call.Started.Compare(b.call.Started), cmp.Compare(a.call.N, b.call.N))
	})
	for i, second := range all {
		for _, first := range all[:i] {
			if first.call.Ended.IsZero() || second.call.Started.Before(first.call.Ended.Add(-closeSeenWithin)) {
				pairs = append(pairs, overlap{first, second})
			}
		}
	}
	return pairs
}

const (
	// closeSeenWithin is how late a busy machine may see that a connection was closed.
	closeSeenWithin = 400 * time.Millisecond
	// spooledWithin is how long after the end of a call its process may not have read all of it and put it into the spool, which outlives
	// the process: the longest delay of a fault point, and as much again for a busy machine.
	spooledWithin = 6 * time.Second
	// election is how long a loss among three servers may be felt, and the return of one.
	election = 10 * time.Second
	// storeReopens is how long a bus on a disk that was full may take no writes after there is room again.
	storeReopens = 15 * time.Second
)

// evidence is what was done while calls were made.
type evidence struct {
	faults  []Fault
	servers []string // which of the targets are the bus
}

// destroyed names the fault by which a whole answer was not kept: something that happened to its own process or to the bus before all
// of it was in the spool, a full disk until it was settled, or the provider's own connection.
func (e evidence) destroyed(a *attempt) (Fault, bool) {
	inSpool := a.gone
	if ended := a.call.Ended; !ended.IsZero() && (a.gone.IsZero() || ended.Add(spooledWithin).Before(a.gone)) {
		inSpool = ended.Add(spooledWithin)
	}
	if by, found := e.disturbed(a.pid(), a.started, inSpool); found {
		return by, true
	}
	if by, found := e.first(a.started.Add(-storeReopens), a.gone, func(s Fault) bool { return s.Target == theDisk }); found {
		return by, true
	}
	if c := a.call; c.Outcome == standin.Broken { // after the last byte, and nobody knows what has arrived
		return Fault{Target: theProvider, What: "broken off", From: c.Ended, To: c.Ended}, true
	}
	return Fault{}, false
}

// overlapped names the fault by which a call was made while another was open: the process of the first was stopped or ended, or has lost
// its lease with the bus or the full disk; or that of the second was stopped when it was about to make it, and so came late.
func (e evidence) overlapped(o overlap) (Fault, bool) {
	if by, found := e.disturbed(o.first.pid(), o.first.started, o.second.call.Started); found {
		return by, true
	}
	if by, found := e.first(o.first.started.Add(-storeReopens), o.second.call.Started, func(s Fault) bool { return s.Target == theDisk }); found {
		return by, true
	}
	return e.disturbed(o.second.pid(), o.second.started, o.second.call.Started)
}

// disturbed finds what was done to a researcher's process, or else to the bus, within a time. When nobody knows which process it was, it
// may have been any researcher.
func (e evidence) disturbed(pid int, from, to time.Time) (Fault, bool) {
	if by, found := e.first(from, to, func(s Fault) bool {
		return programOf(s.Target) == "researcher" && (s.PID == pid || pid == 0)
	}); found {
		return by, true
	}
	// One server is there when an attempt is started: that is appended to it. Of three another may have led.
	if len(e.servers) > 1 {
		from = from.Add(-election)
	}
	return e.first(from, to, func(s Fault) bool { return slices.Contains(e.servers, s.Target) })
}

// ended finds the processes that ended by themselves. One that could not start, or go on, while something was done to the bus or to the
// disk is started again by whoever keeps it, and is only told.
func (f *findings) ended(ends []unasked, e evidence) {
	for _, end := range ends {
		if _, found := e.first(end.since.Add(-storeReopens), end.till, func(s Fault) bool {
			return s.Target == theDisk || slices.Contains(e.servers, s.Target)
		}); !found {
			f.add("%s: nobody had ended it", end.said)
		}
	}
}

// first is the first fault of a kind within a time; a zero end is none.
func (e evidence) first(from, to time.Time, is func(Fault) bool) (by Fault, found bool) {
	for _, s := range e.faults {
		if is(s) && s.during(from, to) && (!found || s.From.Before(by.From)) {
			by, found = s, true
		}
	}
	return by, found
}
