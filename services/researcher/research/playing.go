package research

import (
	"context"
	"sync"
)

// playing are the runs that this process replays. The zero value is none.
type playing struct {
	mu   sync.Mutex
	runs map[string]chan struct{} // closed when it has ended
}

// enter waits until nobody else of this process plays the run. leave must be called, unless there is an error, which is that of ctx.
func (p *playing) enter(ctx context.Context, run string) (leave func(), err error) {
	for {
		p.mu.Lock()
		before := p.runs[run]
		if before == nil {
			ended := make(chan struct{})
			if p.runs == nil {
				p.runs = map[string]chan struct{}{}
			}
			p.runs[run] = ended
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				delete(p.runs, run)
				p.mu.Unlock()
				close(ended)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-before:
		}
	}
}
