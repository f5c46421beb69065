package extractive

import "sync"

// lately holds the claims that were read last, for the whole process.
var lately memory

const (
	rememberedClaims = 256     // in each of the two generations
	rememberedLength = 2 << 10 // bytes; statements are shorter, and what is longer is read once
)

// memory holds claims by their text, in two generations: when the newer is full it becomes the older, and what was in that is forgotten.
type memory struct {
	mu           sync.Mutex
	newer, older map[string]*claim
}

// find returns a claim that must not be changed.
func (m *memory) find(text string) (*claim, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.newer[text]; ok {
		return c, true
	}
	c, ok := m.older[text]
	if ok {
		m.put(text, c)
	}
	return c, ok
}

// keep takes a claim over: it must not be changed any more.
func (m *memory) keep(text string, c *claim) {
	if len(text) > rememberedLength {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(text, c)
}

func (m *memory) put(text string, c *claim) {
	if m.newer == nil || len(m.newer) >= rememberedClaims {
		m.newer, m.older = make(map[string]*claim, rememberedClaims), m.newer
	}
	m.newer[text] = c
}
