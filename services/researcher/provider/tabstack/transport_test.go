package tabstack

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The base URL is checked when the client is made; a name may still lead elsewhere when it is dialled. The refusal comes
// before anything is sent.
func TestOfflineNoConnectionLeavesThisMachine(t *testing.T) {
	t.Parallel()
	offline := transport(Config{Offline: true, ConnectTimeout: time.Second})
	require.Nil(t, offline.Proxy, "a proxy would carry the call away")
	for _, far := range []string{"203.0.113.1:80", "[2001:db8::1]:443"} {
		_, err := offline.DialContext(t.Context(), "tcp", far)
		require.ErrorIs(t, err, ErrOffline)
	}
}
