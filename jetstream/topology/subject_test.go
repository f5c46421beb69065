package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

func TestSubjectsHaveFiveTokens(t *testing.T) {
	t.Parallel()
	s := topology.Subject("run", "completed", "abc", "r1", 2)
	require.Equal(t, "run.completed.abc.r1.2", s)
	p, err := topology.Parse(s)
	require.NoError(t, err)
	require.Equal(t, topology.Parts{Family: "run", Verb: "completed", Thread: "abc", ID: "r1", N: 2}, p)
	require.Equal(t, s, p.String())
	require.Equal(t, "*.*.abc.>", topology.ThreadFilter("abc"))
}

func TestParseRefusesWhatIsNoSubject(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "run", "run.completed.t.r", "run.completed.t.r.0.1", "run.completed.t.r.x", "run.completed.t.r.-1",
		"run.completed.t.r.01", "run.completed.t.r.+1", "run.completed..r.0", "run..t.r.0", "nothing.completed.t.r.0",
		"run.*.t.r.0", "run.completed.>.r.0", "run.completed.a b.r.0", "run.completed.t.r.99999999999999999999",
		"trail.t.r.1.0", "run.completed.t\x00.r.0",
	} {
		_, err := topology.Parse(s)
		require.ErrorIs(t, err, topology.ErrSubject, s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("run.completed.abc.r1.2")
	f.Add("run.*.abc.>.0")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := topology.Parse(s)
		if err != nil {
			require.ErrorIs(t, err, topology.ErrSubject)
			return
		}
		require.Equal(t, s, p.String())
		require.NoError(t, p.Check())
	})
}
