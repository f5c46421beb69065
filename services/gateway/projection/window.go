package projection

import (
	"slices"
	"sort"
	"sync"
)

const (
	// windowEvents and windowBytes bound what is kept in memory of the newest events; whichever is reached first. Who watches is some batches behind,
	// not more, and one has up to 256 events (projector.DefaultBatch): four of those. An event is 2 KB in the middle, so that both bounds are
	// near one another; with large reports it is the bytes that hold the memory down.
	windowEvents = 1024
	windowBytes  = 4 << 20
)

// window is the newest events, so that those who watch need not ask the file at every one, nor wait for it. It may be ahead of the file: what is in it is in
// the stream, and is told again by a gateway that ends before it was written. What is in it is never changed, only let go.
type window struct {
	most, mostBytes int

	mu     sync.RWMutex
	events []RawEvent // ascending
	bytes  int
	behind uint64 // every event that was taken and that has a higher sequence is here
	end    uint64 // sequence of the last message that was taken
}

// newWindow is empty, in front of a file that ends at a sequence.
func newWindow(end uint64) *window {
	return &window{most: windowEvents, mostBytes: windowBytes, behind: end, end: end}
}

// take adds what was folded, and lets go of what was deleted with it and of the oldest.
func (w *window) take(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = b.last
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
func (w *window) after(thread string, after uint64, limit int) (events []RawEvent, upTo uint64, here bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if after < w.behind {
		return nil, 0, false
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
	return events, w.end, true
}

// last is the sequence of the last message that was taken.
func (w *window) last() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.end
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
