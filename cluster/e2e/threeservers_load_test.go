//go:build threeservers

package e2e

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
)

var (
	loadThreads = flag.Int("load-threads", 50, "how many threads are researched while servers are killed")
	loadEvery   = flag.Duration("load-every", 10*time.Second, "from the kill of one server to that of the next")
)

func TestFiftyThreadsAreResearchedWhileAServerIsKilledEveryTenSeconds(t *testing.T) {
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	report, err := chaos.Run(t.Context(), chaos.Options{
		Seed: 1, Duration: 20 * time.Minute, Calm: 5 * time.Minute, Bin: bin, Dir: t.TempDir(), Out: os.Stderr,
		Cluster: true, Load: chaos.Load{Threads: *loadThreads, Every: *loadEvery},
	})
	require.NoError(t, err)
	t.Logf("%d kills of a server in %s: %d events, %d threads, %d runs, %d credits, %d calls", report.Survived[chaos.KindBusKill], report.Took.Round(time.Second),
		report.Events, report.Threads, report.Runs, report.Spent, report.Calls.Calls)
	require.Empty(t, report.Findings)
	require.Empty(t, report.Unasked)
	require.Equal(t, *loadThreads, report.Threads)
	require.GreaterOrEqual(t, report.Survived[chaos.KindBusKill], 3, "all three servers, or it was too fast to mean anything")
	require.Equal(t, report.Runs, report.Whole, "every run is completed")
	require.Equal(t, report.Runs, report.Calls.Calls, "each by one call")
	require.Equal(t, report.Runs, report.Calls.Whole)
	require.Empty(t, report.Rebought)
	require.LessOrEqual(t, report.Calls.MaxInFlight, 1)
}
