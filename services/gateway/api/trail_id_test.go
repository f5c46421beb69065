package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrailIDsAreReadBack(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"1", "a.1", "1.a", "-1.1", "1.-1", ".", "1.1.1", "1.99999999999999999999"} {
		_, err := parseTrailID(bad)
		require.Error(t, err, bad)
	}
	at, err := parseTrailID("")
	require.NoError(t, err)
	require.Equal(t, trailID{}, at)
}

func FuzzTrailID(f *testing.F) {
	f.Add("1.2")
	f.Add("")
	f.Add("x.y")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseTrailID(s)
		if err != nil || s == "" {
			return
		}
		again, err := parseTrailID(at.String())
		require.NoError(t, err)
		require.Equal(t, at, again)
	})
}
