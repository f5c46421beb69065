package artifact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnArtifactIsFoundByItsName(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	name := AttemptName("run1", 2)
	_, err := store.Named(t.Context(), "t1", name)
	require.ErrorIs(t, err, ErrMissing)
	first, err := store.Put(t.Context(), "t1", []byte("first"))
	require.NoError(t, err)
	second, err := store.Put(t.Context(), "t1", []byte("second"))
	require.NoError(t, err)
	for _, ref := range []Ref{first, first, second} {
		require.NoError(t, store.Name(t.Context(), "t1", name, ref))
		got, err := store.Named(t.Context(), "t1", name)
		require.NoError(t, err)
		require.Equal(t, ref, got)
	}
	_, err = store.Named(t.Context(), "t2", name)
	require.ErrorIs(t, err, ErrMissing)
	require.NoError(t, store.Unname(t.Context(), "t1", name))
	require.NoError(t, store.Unname(t.Context(), "t1", name))
	_, err = store.Named(t.Context(), "t1", name)
	require.ErrorIs(t, err, ErrMissing)
	content, err := store.Get(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "second", string(content))
}

func TestANameCannotReachBeyondItsThread(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	ref, err := store.Put(t.Context(), "t1", []byte("content"))
	require.NoError(t, err)
	for _, name := range []string{"", "nodot", "../t2.x", "a/b.1", "run.1 ", "run..1", ".1", strings.Repeat("a", 64), "Run.1"} {
		require.ErrorIs(t, store.Name(t.Context(), "t1", name, ref), ErrBadRef, name)
		_, err := store.Named(t.Context(), "t1", name)
		require.ErrorIs(t, err, ErrBadRef, name)
		require.ErrorIs(t, store.Unname(t.Context(), "t1", name), ErrBadRef, name)
	}
	require.ErrorIs(t, store.Name(t.Context(), "t2", "run.1", ref), ErrBadRef)
	require.ErrorIs(t, store.Name(t.Context(), "t1", "run.1", Ref{Ref: "t1/x"}), ErrBadRef)
}

func TestThreadsAreDeletedWithTheirNames(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	n, err := store.DeleteThreads(t.Context(), func(string) bool { return true })
	require.NoError(t, err)
	require.Zero(t, n)
	refs := map[string]Ref{}
	for _, thread := range []string{"t1", "t2", "t3", "t11"} {
		refs[thread], err = store.Put(t.Context(), thread, []byte("content"))
		require.NoError(t, err)
		require.NoError(t, store.Name(t.Context(), thread, "run.1", refs[thread]))
	}
	n, err = store.DeleteThreads(t.Context(), func(thread string) bool { return thread == "t1" || thread == "t3" })
	require.NoError(t, err)
	require.Equal(t, 4, n)
	for thread, ref := range refs {
		_, err := store.Get(t.Context(), ref)
		_, named := store.Named(t.Context(), thread, "run.1")
		if thread == "t1" || thread == "t3" {
			require.ErrorIs(t, err, ErrMissing)
			require.ErrorIs(t, named, ErrMissing)
		} else {
			require.NoError(t, err)
			require.NoError(t, named)
		}
	}
	require.NoError(t, store.DeleteThread(t.Context(), "t2"))
	_, err = store.Named(t.Context(), "t2", "run.1")
	require.ErrorIs(t, err, ErrMissing)
}
