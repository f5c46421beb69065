package embedded

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestAServerWhoseStoreRefusesWritesIsBroken(t *testing.T) {
	t.Parallel()
	s := &Server{log: newServerLog(zerolog.Nop())}
	full := errors.New("no space left on device")
	s.log.Errorf("JetStream failed to store a msg on stream '%s > %s': %v", "A", "S", full)
	require.False(t, s.Broken(), "one that was refused may be taken the next time")
	s.log.Errorf("JetStream stream '%s > %s' critical write error: %v", "A", "S", full)
	require.True(t, s.Broken())

	s = &Server{log: newServerLog(zerolog.Nop())}
	s.log.Errorf("Filestore [S] Critical write error: %v", full)
	require.True(t, s.Broken())
}
