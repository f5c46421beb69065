package extractive

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sketch may take two claims for ones that could be the same, but never the other way round: whatever compare calls a duplicate must
// get past it. It follows the rules of align and duplicates.
func TestASketchNeverHidesARepetition(t *testing.T) {
	t.Parallel()
	all := topics(t)
	repeated, spared, asked := 0, 0, 0
	for _, topic := range slices.Sorted(maps.Keys(all)) {
		var claims []*claim
		for _, p := range all[topic] {
			claims = append(claims, read(p.Elder), read(p.Newer))
		}
		for _, elder := range claims {
			sketch := sketchOf(elder.reported())
			for _, newer := range claims {
				asked++
				adds := sketch.adds(newer.reported())
				if adds {
					spared++
				}
				if same(elder, newer) {
					if elder.text != newer.text {
						repeated++
					}
					require.False(t, adds, "%s\n%s", elder.text, newer.text)
				}
			}
		}
	}
	t.Logf("of %d pairs, %d repeat in other words, and %d need no comparison", asked, repeated, spared)
	require.Greater(t, repeated, 50, "in other words")
	require.Greater(t, ratio(spared, asked-repeated), 0.9)
}
