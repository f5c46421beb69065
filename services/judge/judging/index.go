package judging

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/vector"
)

// index holds the vectors of facts in memory, by fingerprint, since a vector belongs to a text and not to the facts that have it. Each
// space has its own set, so that vectors of different models never meet. The index is filled as judges need it and safe for use by
// several goroutines at once.
type index struct {
	mu     sync.RWMutex
	spaces map[string]*vector.Set
}

// of brings the vectors of a scene into the index and gives the search over them.
func (x *index) of(ctx context.Context, m *engine.Engine, s scene) (similarity, error) {
	name := engine.Space(m.Info)
	missing := x.missing(name, s.elders)
	if len(missing) > 0 {
		texts := make([]string, len(missing))
		for i, f := range missing {
			texts[i] = f.Statement
		}
		embedded, err := m.Embed(ctx, texts, func(done, all int) { m.Say(ctx, fmt.Sprintf("embedding fact %d of %d", done+1, all)) })
		if err != nil {
			return nil, err
		}
		if err := x.add(name, m.Info.Dimension, missing, embedded); err != nil {
			return nil, err
		}
	}
	return x.search(name, s.elders), nil
}

// missing gives the facts, one per text, whose vectors are not in the space.
func (x *index) missing(name string, facts []fact) []fact {
	x.mu.RLock()
	defer x.mu.RUnlock()
	known := x.spaces[name]
	seen := map[string]bool{}
	var missing []fact
	for _, f := range facts {
		if seen[f.Fingerprint] {
			continue
		}
		seen[f.Fingerprint] = true
		if known != nil {
			if _, ok := known.Vector(f.Fingerprint); ok {
				continue
			}
		}
		missing = append(missing, f)
	}
	return missing
}

func (x *index) add(name string, dimension int, facts []fact, vectors [][]float32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spaces == nil {
		x.spaces = map[string]*vector.Set{}
	}
	if x.spaces[name] == nil {
		x.spaces[name] = vector.NewSet(dimension)
	}
	for i, f := range facts {
		if err := x.spaces[name].Add(f.Fingerprint, vectors[i]); err != nil {
			return fmt.Errorf("index fact %s: %w", f.ID, err)
		}
	}
	return nil
}

// search finds elders by the vector of a newcomer, which is one of them. Every elder of a text that is alike is found.
func (x *index) search(name string, elders []fact) similarity {
	byText := map[string][]fact{}
	for _, f := range elders {
		byText[f.Fingerprint] = append(byText[f.Fingerprint], f)
	}
	return func(newer fact, floor float64, allowed func(elder fact) bool) []pair {
		x.mu.RLock()
		defer x.mu.RUnlock()
		known := x.spaces[name]
		query, ok := known.Vector(newer.Fingerprint)
		if !ok {
			return nil
		}
		hits, err := vector.TopKWhere(query, known, known.Len(), float32(floor), func(text string) bool {
			return slices.ContainsFunc(byText[text], allowed)
		})
		if err != nil { // a vector of the set has the set's dimension and a direction
			return nil
		}
		var pairs []pair
		for _, h := range hits {
			for _, elder := range byText[h.ID] {
				if allowed(elder) {
					pairs = append(pairs, pair{elder: elder, newer: newer, similarity: float64(h.Score)})
				}
			}
		}
		return pairs
	}
}
