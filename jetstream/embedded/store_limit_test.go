package embedded

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

func TestTheStoreLimitLeavesAQuarterAndAlwaysTheReservedStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ used, free, want int64 }{
		"plenty":           {1 << 30, 40 << 30, 31 << 30},
		"a disk near full": {1 << 30, 300 << 20, 1<<30 + leastStore},
		"a full disk":      {1 << 30, 0, 1<<30 + leastStore},
		"a small disk":     {0, 330 << 20, leastStore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, storeLimit(c.used, c.free, 1))
			require.Greater(t, storeLimit(c.used, c.free, 1), int64(topology.DefaultTrailMaxBytes), "the server refuses to open what it cannot reserve")
		})
	}
}

func TestTheStoreLimitOfSeveralServersHasRoomForEveryCopyThatIsReserved(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(31<<30), storeLimit(1<<30, 40<<30, Servers))
	require.Greater(t, storeLimit(0, 0, Servers), int64(Servers*topology.DefaultTrailMaxBytes))
}
