package projection

import (
	"slices"
	"sort"
	"sync"
)

const (
	// windowEvents and windowBytes bound what is kept in memory of the newest events; whichever is reached first. Who watches is some commits behind,
	// not more, and a commit has up to 256 events (projector.DefaultBatch): four of those. An event is 2 KB in the middle, so that both bounds are
	// near one another; with large reports it is the bytes that hold the memory down.
	windowEvents = 1024
	windowBytes  = 4 << 20
)

// window is the newest events that the file shows, so that those who watch need not ask it at every commit. It is filled after the commit: nobody is told
// what is not in the file yet. What is in it is never changed, only let go.
type window struct {
	most, mostBytes int

	mu     sync.RWMutex
	events []RawEvent // ascending
	bytes  int
	behind uint64 // every event that the file shows and that has a higher sequence is here
}

// newWindow is empty, in front of a file that ends at a sequence.
func newWindow(end uint64) *window {
	return &window{most: windowEvents, mostBytes: windowBytes, behind: end}
}

// take adds what was committed, and lets go of what was deleted with it and of the oldest.
func (w *window) take(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range b.purges {
		w.events = slices.DeleteFunc(w.events, func(e RawEvent) bool {
			if d.covers(e) {
				w.bytes -= e.size()
				return true
			}
			return false
		})
	}
	for _, e := range b.events {
		w.events = append(w.events, e)
		w.bytes += e.size()
	}
	old := 0
	for ; len(w.events)-old > w.most || w.bytes > w.mostBytes; old++ {
		w.bytes -= w.events[old].size()
		w.behind = w.events[old].Seq
	}
	clear(w.events[:old]) // the array is kept for a while
	w.events = w.events[old:]
}

// after gives what Events does. False: something between may be missing here, and the file has it.
func (w *window) after(thread string, after uint64, limit int) (events []RawEvent, here bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if after < w.behind {
		return nil, false
	}
	first := sort.Search(len(w.events), func(i int) bool { return w.events[i].Seq > after })
	for _, e := range w.events[first:] {
		if len(events) == limit {
			break
		}
		if thread == "" || e.Thread == thread {
			events = append(events, e)
		}
	}
	return events, true
}

// size is about what an event takes in memory, in bytes.
func (e RawEvent) size() int {
	const fields = 64 // RawEvent itself
	return fields + len(e.Type) + len(e.Thread) + len(e.Body)
}

// purge is what a deleted thread takes with it: its events before the tombstone.
type purge struct {
	thread string
	before uint64
}

func (d purge) covers(e RawEvent) bool { return e.Thread == d.thread && e.Seq < d.before }
