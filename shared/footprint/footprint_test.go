package footprint

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProcessTakesItsShareUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	had := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(had)
		ballast = nil
	})
	t.Setenv("GOMAXPROCS", "3")
	t.Setenv("GOGC", "50")
	Take(4)
	require.Equal(t, had, runtime.GOMAXPROCS(0))
	require.Empty(t, ballast)

	t.Setenv("GOMAXPROCS", "")
	t.Setenv("GOGC", "")
	runtime.GOMAXPROCS(8)
	Take(4)
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	require.Len(t, ballast, ballastSize)
	Take(1)
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	Take(4)
	require.Equal(t, 1, runtime.GOMAXPROCS(0), "never none")
}
