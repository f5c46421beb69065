package research

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/shared/artifact"
)

func TestASpooledAnswerIsReadBackAsItCame(t *testing.T) {
	t.Parallel()
	s, a := spool(t.TempDir()), attempt{"t1", "r1", 3}
	f, err := s.create(a, time.Now, true)
	require.NoError(t, err)
	require.True(t, f.empty())
	for _, piece := range []string{"event: start\n", "data: {}\n", "\n"} {
		f.write([]byte(piece))
	}
	require.NoError(t, f.finish())
	f.close()

	again, err := s.open(a)
	require.NoError(t, err)
	content, err := io.ReadAll(again.content())
	require.NoError(t, err)
	require.Equal(t, "event: start\ndata: {}\n\n", string(content))
	again.close()
	found, err := s.list()
	require.NoError(t, err)
	require.Equal(t, []attempt{a}, found)
	require.NoError(t, s.remove("t1", "another"))
	_, err = s.open(a)
	require.NoError(t, err)
	require.NoError(t, s.remove("t1", "r1"))
	_, err = s.open(a)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A disk that takes no more does not cost the answer: the rest is in memory and is kept with the beginning.
func TestADiskThatIsFullInTheMiddleCostsNothing(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	store, err := artifact.Open(t.Context(), js)
	require.NoError(t, err)
	s, a := spool(t.TempDir()), attempt{"t1", "r1", 1}
	f, err := s.create(a, time.Now, true)
	require.NoError(t, err)
	f.write([]byte("the beginning, "))
	broken, err := os.Open(f.path) // read only: every write fails from now on
	require.NoError(t, err)
	whole := f.file
	f.file = broken
	f.write([]byte("the middle, "))
	f.write([]byte("the end"))
	require.Error(t, f.finish())
	ref, err := f.keep(t.Context(), store, "t1", artifact.AttemptName("r1", 1), func(artifact.Ref) bool { return false })
	require.NoError(t, err)
	content, err := store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "the beginning, the middle, the end", string(content))
	named, err := store.Named(t.Context(), "t1", artifact.AttemptName("r1", 1))
	require.NoError(t, err)
	require.Equal(t, ref, named)
	f.close()
	require.NoError(t, whole.Close())
}

func TestASpoolThatCannotBeWrittenHoldsTheAnswerInMemory(t *testing.T) {
	t.Parallel()
	f, err := spool(t.TempDir()+"/gone").create(attempt{"t1", "r1", 1}, time.Now, true)
	require.Error(t, err)
	f.write([]byte("all of it"))
	require.NoError(t, f.finish())
	content, err := io.ReadAll(f.content())
	require.NoError(t, err)
	require.Equal(t, "all of it", string(content))
	f.close()
}

func TestOnlyNamesThatTheSpoolMadeAreItsOwn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"t1.r1.1.raw": true, "t1.r1.12.raw": true, "t1.r1.0.raw": false, "t1.r1.x.raw": false, "t1.r1.raw": false, "t1.r1.1": false,
		"T1.r1.1.raw": false, "..r1.1.raw": false, "a.b.c.1.raw": false, "": false,
	} {
		_, ok := parseSpooled(name)
		require.Equal(t, want, ok, name)
	}
}

func FuzzParseSpooled(f *testing.F) {
	f.Add("t1.r1.1.raw")
	f.Add("a/b.c.1.raw")
	f.Fuzz(func(t *testing.T, name string) {
		a, ok := parseSpooled(name)
		if ok && bytes.ContainsAny([]byte(a.file()), "/\\\x00") {
			t.Fatalf("%q names a file elsewhere", name)
		}
	})
}
