package notebook

import (
	"fmt"

	"github.com/factstream/factstream/shared/event"
)

// Status is what is shown: running while the standing status is running, or while it is new, idle or complete and a cycle is not settled; else the
// standing status with its reason.
func (t *Thread) Status() (string, event.Reason) {
	c := t.Unsettled()
	if c == nil || t.Standing == Paused {
		return t.Standing, t.Reason
	}
	return Running, t.activity(c)
}

func (t *Thread) activity(c *Cycle) event.Reason {
	if newest := c.Newest(); c.retried || (newest != nil && newest.Retry) {
		return event.Reason{Code: ReasonRetry, Text: fmt.Sprintf("A stage of cycle %d is done again.", c.ID)}
	}
	switch c.Kind {
	case event.KindManual:
		return event.Reason{Code: ReasonManual, Text: fmt.Sprintf("A run that you asked for is under way (cycle %d).", c.ID)}
	case event.KindWatch:
		return event.Reason{Code: ReasonWatch, Text: fmt.Sprintf("A watch is looking again (cycle %d).", c.ID)}
	}
	return event.Reason{Code: ReasonCycle, Text: fmt.Sprintf("Cycle %d is under way: %d of its %d runs have ended.", c.ID, t.ended(c), c.Size)}
}

func (t *Thread) ended(c *Cycle) int {
	n := 0
	for _, id := range c.Runs {
		if t.Runs[id].Terminal() {
			n++
		}
	}
	return n
}
