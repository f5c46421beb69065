package extractive

import (
	"sync"

	"github.com/factstream/factstream/shared/text"
)

// What the whole process made last of texts: claims, embeddings, sentences, and guesses of the language.
var (
	lately         memory[*claim]
	latelyEmbedded memory[[]float32]
	latelyDivided  memory[[]text.Sentence]
	latelyGuessed  memory[string]
)

const (
	remembered       = 256     // in each of the two generations; of embeddings, 2 KB each, that is 1 MB
	rememberedLength = 2 << 10 // bytes; statements are shorter, and what is longer is read once
)

// memory holds what was made of texts, in two generations: when the newer is full it becomes the older, and what was in that is forgotten.
type memory[T any] struct {
	mu           sync.Mutex
	newer, older map[string]T
}

// find returns what was kept for a text. It must not be changed.
func (m *memory[T]) find(text string) (T, bool) {
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

// keep takes over what was made of a text: it must not be changed any more. Of a long text nothing is kept.
func (m *memory[T]) keep(text string, c T) {
	if len(text) > rememberedLength {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(text, c)
}

func (m *memory[T]) put(text string, c T) {
	if m.newer == nil || len(m.newer) >= remembered {
		m.newer, m.older = make(map[string]T, remembered), m.newer
	}
	m.newer[text] = c
}

// sentencesOf are the sentences of a text, remembered for a while. Others have the same ones: they must not be changed.
func sentencesOf(s string) []text.Sentence {
	sentences, ok := latelyDivided.find(s)
	if !ok {
		sentences = text.Sentences(s)
		latelyDivided.keep(s, sentences)
	}
	return sentences
}
