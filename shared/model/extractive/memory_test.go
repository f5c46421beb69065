package extractive

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

func TestWhatIsReadIsTheReadersOwn(t *testing.T) {
	t.Parallel()
	const statement = "According to Ember, which tracks grids, the same plants supplied 12.4 percent in 2024; they fell behind in 2025."
	first := read(statement)
	first.lean(read("Wind supplied 8 percent in 2023."))
	for _, part := range first.clauses() {
		part.lean(first)
	}
	first.planned = !first.planned
	own := first.clone()
	for i := range own.terms {
		own.terms[i].kind, own.terms[i].poles, own.terms[i].weak = stop, nil, true
	}
	require.Equal(t, parse(statement), read(statement))
}

func TestAnEmbeddingIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	texts := []string{"Wind supplied 8 percent of the power of Moss in 2023."}
	for range 2 { // made anew, and remembered
		got, err := Engine{}.Embed(t.Context(), texts, model.Document)
		require.NoError(t, err)
		require.Equal(t, embedding(texts[0]), got[0])
		clear(got[0])
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var m memory[*claim]
	for i := range 3 * remembered {
		m.keep(fmt.Sprint(i), &claim{})
		_, kept := m.find("0") // what is used stays
		require.True(t, kept)
		require.LessOrEqual(t, len(m.newer)+len(m.older), 2*remembered)
	}
	_, kept := m.find("1")
	require.False(t, kept)
	long := strings.Repeat("x", rememberedLength+1)
	m.keep(long, &claim{})
	_, kept = m.find(long)
	require.False(t, kept)
}

func TestTheMemoryIsSharedByManyReaders(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 400 {
				s := fmt.Sprintf("Plant %d opened in 2024 and employs %d people.", i%100, i%100)
				c := read(s)
				c.lean(read("It is large."))
				if c.text != s {
					t.Errorf("%q was read as %q", s, c.text)
				}
			}
		})
	}
	wg.Wait()
}

// A phrase is found by going on from word to word, so every entry of several words must be there with all that it begins with.
func TestEveryPhraseOfTheLexiconIsFound(t *testing.T) {
	t.Parallel()
	lex := words()
	several := 0
	check := func(key string) {
		if !strings.Contains(key, " ") {
			return
		}
		several++
		require.True(t, lex.many[key], key)
		for i, c := range key {
			if c == ' ' {
				_, begins := lex.many[key[:i]]
				require.True(t, begins, key)
			}
		}
	}
	for key := range lex.concepts {
		check(key)
	}
	for key := range lex.poles {
		check(key)
	}
	for _, section := range lex.classes {
		for key := range section {
			check(key)
		}
	}
	require.Greater(t, several, 50)
}
