//go:build threeservers

package artifact

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) {
	bustest.ServeIfAsked()
	os.Exit(m.Run())
}

// Each server in turn is away while content is kept and comes back behind the others. Sweeps that begin at that moment, and that would take
// anything for left behind that they find no meta of, take nothing but what is.
func TestASweepTakesNothingThatIsNamedWhileAServerCatchesUp(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	const stream = "OBJ_" + topology.StoreArtifacts
	var stores []*Store
	for i := range bustest.Servers {
		_, js := c.Dial(t, i)
		stores = append(stores, another(t, js))
	}
	_, js := c.Dial(t, 0)
	content := func(i int) []byte { return fmt.Appendf(nil, "text %d", i) }
	kept := map[int]Ref{}
	keep := func(store *Store, n int) {
		for i := len(kept); n > 0; i, n = i+1, n-1 {
			require.Eventually(t, func() (done bool) { // while a leader is elected it fails
				ref, err := store.Put(t.Context(), "t1", content(i))
				kept[i] = ref
				return err == nil
			}, 3*time.Minute, 10*time.Millisecond)
		}
	}
	keep(stores[0], 20)
	race(t, js, "t2", []byte("equal"))
	removed := 0
	for away := range bustest.Servers {
		c.Kill(away)
		keep(stores[(away+1)%bustest.Servers], 200)
		c.Run(t, away)
		whole := make(chan error, 1)
		go func() { whole <- c.AwaitWhole(t.Context(), js, stream) }()
		for caughtUp := false; !caughtUp; {
			select {
			case err := <-whole:
				require.NoError(t, err)
				caughtUp = true
			default:
			}
			for _, store := range stores {
				swept, err := store.Sweep(t.Context(), 0, wanted)
				if err != nil {
					t.Logf("without %d: %v", away, err)
				}
				removed += swept.Pieces
			}
		}
	}
	require.Eventually(t, func() bool {
		swept, err := stores[0].Sweep(t.Context(), 0, wanted)
		removed += swept.Pieces
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	t.Logf("%d puts left pieces without a name", removed)
	require.Positive(t, removed)
	for i, ref := range kept {
		got, err := stores[i%len(stores)].Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, string(content(i)), string(got))
	}
	pieces, _ := objects(t, js)
	require.Equal(t, len(kept)+1, pieces, "those of the two equal ones too")
}
