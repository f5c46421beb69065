package topology_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

// docs/consumers.md promises readers that no worker, of a later version either, will ever want a name of theirs.
func TestNoWorkerHasANameOfAReader(t *testing.T) {
	t.Parallel()
	for _, d := range topology.Durables() {
		require.False(t, strings.HasPrefix(d.Name, "ext-"), d.Name)
	}
}
