package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
)

func setup(t *testing.T) (*Store, jetstream.JetStream) {
	t.Helper()
	_, _, js := bustest.Start(t)
	store, err := Open(t.Context(), js)
	require.NoError(t, err)
	return store, js
}

// objects counts the messages of the object store: those of pieces and those of names.
func objects(t *testing.T, js jetstream.JetStream) (pieces, names int) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "OBJ_"+topology.StoreArtifacts)
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	for subject, n := range info.State.Subjects {
		if strings.Contains(subject, ".C.") {
			pieces += int(n)
		} else {
			names += int(n)
		}
	}
	return pieces, names
}

func TestWhatIsPutIsGot(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	for name, content := range map[string][]byte{
		"empty": {}, "small": []byte("a report"), "several pieces": bytes.Repeat([]byte("0123456789"), 100_000),
	} {
		ref, err := store.Put(t.Context(), "t1", content)
		require.NoError(t, err, name)
		got, err := store.Get(t.Context(), ref)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(content, got), name)
	}
}

func TestOfManyEachContentIsKeptOnce(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	var contents []string
	for i := range 60 {
		contents = append(contents, fmt.Sprintf("text %d", i%20))
	}
	refs, err := store.PutAll(t.Context(), "t1", contents)
	require.NoError(t, err)
	require.Len(t, refs, len(contents))
	for i, content := range contents[:20] {
		one, err := store.Put(t.Context(), "t1", []byte(content))
		require.NoError(t, err)
		for n := i; n < len(refs); n += 20 {
			require.Equal(t, one, refs[n])
		}
	}
	pieces, names := objects(t, js)
	require.Equal(t, 20, pieces)
	require.Equal(t, 20, names)

	refs, err = store.PutAll(t.Context(), "t1", nil)
	require.NoError(t, err)
	require.Empty(t, refs)
	_, err = store.PutAll(t.Context(), "no thread", contents)
	require.ErrorIs(t, err, ErrBadRef)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = store.PutAll(ctx, "t1", contents)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheReferenceIsAFunctionOfThreadAndContent(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	ref, err := store.Put(t.Context(), "t1", []byte("abc"))
	require.NoError(t, err)
	encoded, err := json.Marshal(ref)
	require.NoError(t, err)
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	require.JSONEq(t, `{"ref":"t1/`+sum+`","sha256":"`+sum+`","size":3}`, string(encoded))
}

func TestEqualContentsAtOnceLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	for range 10 {
		ref, err := RefOf("t1", strings.NewReader("abc"))
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if i%2 == 0 {
					_, err := store.Put(t.Context(), "t1", []byte("abc"))
					assert.NoError(t, err)
					return
				}
				assert.NoError(t, store.PutNew(t.Context(), ref, bytes.NewReader([]byte("abc"))))
			})
		}
		wg.Wait()
		content, err := store.Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, "abc", string(content))
		pieces, _ := objects(t, js)
		require.Equal(t, 1, pieces)
		require.NoError(t, store.Delete(t.Context(), ref))
		pieces, _ = objects(t, js)
		require.Zero(t, pieces)
	}
}

func TestWhatIsPutWhileItIsDeletedIsWholeOrGone(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	for range 20 {
		ref, err := store.Put(t.Context(), "t1", []byte("abc"))
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, store.Delete(t.Context(), ref)) })
		wg.Go(func() { assert.NoError(t, store.PutNew(t.Context(), ref, strings.NewReader("abc"))) })
		wg.Go(func() { assert.NoError(t, store.DeleteThread(t.Context(), "t1")) })
		wg.Wait()
		if _, err := store.Get(t.Context(), ref); err != nil {
			require.ErrorIs(t, err, ErrMissing)
		}
		require.NoError(t, store.DeleteThread(t.Context(), "t1"))
		pieces, _ := objects(t, js)
		require.Zero(t, pieces)
	}
}

func TestTheSameContentIsKeptOnce(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	var wg sync.WaitGroup
	_, err := store.Put(t.Context(), "t1", []byte("abc"))
	require.NoError(t, err)
	for range 4 {
		wg.Go(func() {
			_, err := store.Put(t.Context(), "t1", []byte("abc"))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	pieces, names := objects(t, js)
	require.Equal(t, 1, pieces)
	require.Equal(t, 1, names)
}

// What nobody refers to is put without a look; if it is there all the same, it takes its own place and leaves no pieces behind.
func TestWhatIsPutAsNewIsKeptOnceToo(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	content := []byte("an answer")
	ref, err := RefOf("t1", bytes.NewReader(content))
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, store.PutNew(t.Context(), ref, bytes.NewReader(content)))
		got, err := store.Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, content, got)
		pieces, names := objects(t, js)
		require.Equal(t, [2]int{1, 1}, [2]int{pieces, names})
	}
	require.ErrorIs(t, store.PutNew(t.Context(), ref, strings.NewReader("another")), ErrChanged)
	require.ErrorIs(t, store.PutNew(t.Context(), Ref{Ref: "t1/.."}, bytes.NewReader(nil)), ErrBadRef)
}

func TestAStreamIsKeptAsItsContent(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	content := bytes.Repeat([]byte("spooled "), 50_000)
	streamed, err := RefOf("t1", bytes.NewReader(content))
	require.NoError(t, err)
	require.NoError(t, store.PutAs(t.Context(), streamed, bytes.NewReader(content)))
	got, err := store.Get(t.Context(), streamed)
	require.NoError(t, err)
	require.Equal(t, content, got)
	whole, err := store.Put(t.Context(), "t1", content)
	require.NoError(t, err)
	require.Equal(t, whole, streamed)

	_, err = RefOf("t1", iotest.ErrReader(os.ErrClosed))
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = RefOf("t/1", bytes.NewReader(nil))
	require.ErrorIs(t, err, ErrBadRef)
}

func TestAFileThatChangesIsNotKept(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	ref, err := newRef("t1", strings.Repeat("ab", 32), 3)
	require.NoError(t, err)
	_, err = store.put(t.Context(), ref, strings.NewReader("xyz"))
	require.ErrorIs(t, err, ErrChanged)
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, ErrMissing)
}

func TestWhatIsNotThereIsMissing(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	ref, err := store.Put(t.Context(), "t1", []byte("abc"))
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), ref))
	require.NoError(t, store.Delete(t.Context(), ref), "deleting again is no error")
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, ErrMissing)

	again, err := store.Put(t.Context(), "t1", []byte("abc"))
	require.NoError(t, err)
	got, err := store.Get(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
}

func TestDamageIsSeenAndMendedByPuttingAgain(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	content := bytes.Repeat([]byte("x"), 300_000)
	ref, err := store.Put(t.Context(), "t1", content)
	require.NoError(t, err)
	info, err := store.objects.GetInfo(t.Context(), ref.Ref)
	require.NoError(t, err)
	pieces := "$O." + topology.StoreArtifacts + ".C." + info.NUID

	require.NoError(t, store.stream.Purge(t.Context(), jetstream.WithPurgeSubject(pieces), jetstream.WithPurgeKeep(1)))
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, ErrCorrupt, "a piece is gone")

	_, err = store.Put(t.Context(), "t1", content)
	require.NoError(t, err)
	got, err := store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))

	// As many pieces as there were, but one of other content.
	info, err = store.objects.GetInfo(t.Context(), ref.Ref)
	require.NoError(t, err)
	pieces = "$O." + topology.StoreArtifacts + ".C." + info.NUID
	require.NoError(t, store.stream.Purge(t.Context(), jetstream.WithPurgeSubject(pieces), jetstream.WithPurgeKeep(uint64(info.Chunks-1))))
	_, err = js.Publish(t.Context(), pieces, []byte("y"))
	require.NoError(t, err)
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, ErrCorrupt, "a piece is another")
}

func TestDeletingAThreadLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	require.NoError(t, store.DeleteThread(t.Context(), "t1"), "none at all")
	var mine []Ref
	for _, content := range []string{"a", "b", "c"} {
		ref, err := store.Put(t.Context(), "t1", []byte(content))
		require.NoError(t, err)
		mine = append(mine, ref)
	}
	other, err := store.Put(t.Context(), "t11", []byte("a"))
	require.NoError(t, err)

	require.NoError(t, store.DeleteThread(t.Context(), "t1"))
	for _, ref := range mine {
		_, err := store.Get(t.Context(), ref)
		require.ErrorIs(t, err, ErrMissing)
	}
	_, err = store.Get(t.Context(), other)
	require.NoError(t, err)
	pieces, _ := objects(t, js)
	require.Equal(t, 1, pieces, "the content is gone, not only its name")
}

func TestOnlyOwnReferencesAreFollowed(t *testing.T) {
	t.Parallel()
	store := &Store{}
	sum := strings.Repeat("ab", 32)
	for _, ref := range []Ref{
		{}, {Ref: "t1", SHA256: sum}, {Ref: "t1/x", SHA256: "x"}, {Ref: "/" + sum, SHA256: sum},
		{Ref: "t1/" + sum, SHA256: strings.Repeat("cd", 32)}, {Ref: "t1/" + strings.ToUpper(sum), SHA256: strings.ToUpper(sum)},
		{Ref: "t1/" + sum, SHA256: sum, Size: -1}, {Ref: "t1/../" + sum, SHA256: sum},
	} {
		_, err := store.Get(t.Context(), ref)
		require.ErrorIs(t, err, ErrBadRef, "%+v", ref)
		require.ErrorIs(t, store.Delete(t.Context(), ref), ErrBadRef)
	}
	for _, thread := range []string{"", "a/b", "a b"} {
		_, err := store.Put(t.Context(), thread, nil)
		require.ErrorIs(t, err, ErrBadRef)
		require.ErrorIs(t, store.DeleteThread(t.Context(), thread), ErrBadRef)
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	ref, err := store.Put(t.Context(), "t1", bytes.Repeat([]byte("x"), 2<<20))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := store.Reader(ctx, ref)
	require.NoError(t, err)
	cancel()
	_, err = r.Read(make([]byte, 10))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close())
}
