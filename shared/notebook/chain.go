package notebook

import (
	"context"
	"errors"
	"time"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/topology"
)

// ErrOneByOne: a chain takes no more, and what it did not take is to be appended by Append, after Stored.
var ErrOneByOne = errors.New("to be appended by itself")

// chainPause is how long a process begins no chain after one was refused, by whomever's event came between: while many write, few hold.
const chainPause = time.Second

// Chain appends what several commands of one thread lead to, without waiting for one event before the next is sent: a disk that takes
// its time is waited for once. Each is decided on the state that holds if all before it are stored, and is stored only if it directly
// follows the one before it (batch.Ahead), so that a chain ends where anybody else's event came between. It is for one goroutine.
type Chain struct {
	a      *Appender
	thread string
	state  *Thread // once all that was sent is stored
	ahead  *batch.Ahead
	sent   []*batch.Sent
	ended  bool
}

// Chain begins a chain. It takes nothing where the server keeps replicas.
func (a *Appender) Chain(thread string) *Chain { return &Chain{a: a, thread: thread} }

// Append decides a command and sends the event that it leads to. With ErrOneByOne nothing was sent, because it leads to none, to several or to
// a refusal, or because the chain has ended.
func (c *Chain) Append(ctx context.Context, cmd Command, origin Origin) error {
	if c.ended || len(c.sent) == 0 && !c.begin() {
		c.ended = true
		return ErrOneByOne
	}
	c.ended = true // unless it is sent
	d := c.a.decideOn(c.state, c.thread, cmd, origin.withDefaults())
	if d.err != nil || len(d.events) != 1 || c.a.tail.seen(c.thread, d.events[0].ID, 0) {
		return ErrOneByOne
	}
	messages, err := marshal(ctx, d.events)
	if err != nil {
		return ErrOneByOne
	}
	sent, err := c.ahead.Send(messages[0], batch.Expect{Filter: topology.ThreadFilter(c.thread), LastSeq: d.seq})
	if err != nil {
		return ErrOneByOne // too large, or who knows: Append says so
	}
	c.sent = append(c.sent, sent)
	e := d.events[0]
	e.Seq, e.Stored = d.seq+1, e.Time // about: no decision asks for more than that it is later
	e.Original = e.Seq
	c.ended = evolve(c.state, e) != nil
	return nil
}

// begin takes the state to go on from.
func (c *Chain) begin() bool {
	if time.Since(time.Unix(0, c.a.broken.Load())) < c.a.chainPause || !batch.AheadPossible(c.a.js.Conn()) {
		return false
	}
	c.a.tail.View(c.thread, func(t *Thread) { c.state = t.Clone() })
	c.ahead = batch.NewAhead(c.a.js)
	return true
}

// Stored waits until it is known how many of the events that were sent are stored, from the first on, and until the process sees them. Whether
// those behind them are may be unknown; Append finds out. The error is that of ctx.
func (c *Chain) Stored(ctx context.Context) (n int, err error) {
	c.ended = true
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	seq := uint64(0)
	for _, s := range c.sent {
		at, err := s.Stored(bounded)
		if err != nil {
			if errors.Is(err, batch.ErrConflict) {
				c.a.broken.Store(time.Now().UnixNano())
			}
			break
		}
		n, seq = n+1, at
	}
	if n > 0 {
		_ = c.a.tail.WaitFor(ctx, seq) // stored is stored
	}
	if ctx.Err() != nil {
		return n, context.Cause(ctx)
	}
	return n, nil
}
