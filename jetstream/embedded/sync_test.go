package embedded

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestWritesAreSyncedUnlessATestSaysOtherwise(t *testing.T) {
	t.Parallel()
	for _, noSync := range []bool{false, true} {
		srv, err := Start(t.Context(), Options{Dir: t.TempDir(), NoSync: noSync, Logger: zerolog.Nop()})
		require.NoError(t, err)
		require.Equal(t, !noSync, srv.nats.JetStreamConfig().SyncAlways)
		srv.Shutdown()
	}
}
