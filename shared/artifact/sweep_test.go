package artifact

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

const wait = 30 * time.Second

func wanted(string, Ref) bool { return false }

// another is the store of another process.
func another(t *testing.T, js jetstream.JetStream) *Store {
	t.Helper()
	store, err := Open(t.Context(), js)
	require.NoError(t, err)
	return store
}

// slow is content that ends when it may. It is no more than its first part until then.
type slow struct {
	first io.Reader
	may   chan struct{}
	rest  io.Reader
}

func (s *slow) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); n > 0 || err != io.EOF {
		return n, err
	}
	<-s.may
	return s.rest.Read(p)
}

// slowly begins a put and returns when its first piece is there. end lets it end and waits for that.
func slowly(t *testing.T, store *Store, js jetstream.JetStream, ref Ref, content []byte) (end func()) {
	t.Helper()
	before, _ := objects(t, js)
	cut := min(len(content), chunkSize)
	reader := &slow{first: bytes.NewReader(content[:cut]), may: make(chan struct{}), rest: bytes.NewReader(content[cut:])}
	ended := make(chan error, 1)
	go func() { ended <- store.PutNew(t.Context(), ref, reader) }()
	require.Eventually(t, func() bool { pieces, _ := objects(t, js); return pieces > before }, wait, time.Millisecond)
	return func() {
		close(reader.may)
		assert.NoError(t, <-ended)
	}
}

// race lets two processes keep equal content of a thread at the same moment: each knows of nothing that was there before.
func race(t *testing.T, js jetstream.JetStream, thread string, content []byte) Ref {
	t.Helper()
	ref, err := RefOf(thread, bytes.NewReader(content))
	require.NoError(t, err)
	end := slowly(t, another(t, js), js, ref, content)
	_, err = another(t, js).Put(t.Context(), thread, content)
	require.NoError(t, err)
	end()
	return ref
}

func TestPiecesThatNothingNamesAreRemoved(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	swept, err := store.Sweep(t.Context(), 0, wanted)
	require.NoError(t, err)
	require.Zero(t, swept, "nothing at all")

	small, large := []byte("a report"), bytes.Repeat([]byte("x"), 3*chunkSize)
	kept := map[Ref][]byte{race(t, js, "t1", small): small, race(t, js, "t1", large): large}
	other, err := store.Put(t.Context(), "t2", small)
	require.NoError(t, err)
	kept[other] = small
	empty, err := store.Put(t.Context(), "t2", nil)
	require.NoError(t, err)
	kept[empty] = []byte{}
	require.NoError(t, store.Name(t.Context(), "t2", "run.1", other))
	pieces, names := objects(t, js)
	require.Equal(t, 2*(1+3)+1, pieces)

	swept, err = store.Sweep(t.Context(), SafeAge, wanted)
	require.NoError(t, err)
	require.Zero(t, swept, "they may be those of a put under way")

	swept, err = store.Sweep(t.Context(), 0, wanted)
	require.NoError(t, err)
	require.Equal(t, Swept{Pieces: 2}, swept)
	left, namesLeft := objects(t, js)
	require.Equal(t, 1+3+1, left)
	require.Equal(t, names, namesLeft)
	for ref, content := range kept {
		got, err := store.Get(t.Context(), ref)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	}

	require.NoError(t, store.DeleteThread(t.Context(), "t1"))
	require.NoError(t, store.DeleteThread(t.Context(), "t2"))
	left, _ = objects(t, js)
	require.Zero(t, left)
}

// What a deletion leaves that was cut off behind its marker, and a put that never came to its meta.
func TestPiecesOfWhatEndedHalfwayAreRemoved(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	ref, err := store.Put(t.Context(), "t1", []byte("deleted"))
	require.NoError(t, err)
	info, err := store.objects.GetInfo(t.Context(), ref.Ref)
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), ref))
	for _, nuid := range []string{info.NUID, "neverNamed"} {
		for range 2 {
			_, err := js.Publish(t.Context(), piecesOf+nuid, []byte("piece"))
			require.NoError(t, err)
		}
	}
	swept, err := store.Sweep(t.Context(), 0, wanted)
	require.NoError(t, err)
	require.Equal(t, Swept{Pieces: 2}, swept)
	pieces, _ := objects(t, js)
	require.Zero(t, pieces)
}

func TestAPutUnderWayIsNotSwept(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"one piece": []byte("a report"), "several": bytes.Repeat([]byte("x"), 3*chunkSize)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, js := setup(t)
			ref, err := RefOf("t1", bytes.NewReader(content))
			require.NoError(t, err)
			end := slowly(t, store, js, ref, content)
			swept, err := another(t, js).Sweep(t.Context(), SafeAge, wanted)
			require.NoError(t, err)
			require.Zero(t, swept)
			end()
			got, err := store.Get(t.Context(), ref)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
			swept, err = store.Sweep(t.Context(), 0, wanted)
			require.NoError(t, err)
			require.Zero(t, swept)
		})
	}
}

func TestOneSweepRemovesNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	for i := range sweepAtMost + 1 {
		_, err := js.PublishAsync(fmt.Sprintf("%slost%d", piecesOf, i), []byte("piece"))
		require.NoError(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(wait):
		t.Fatal("not stored")
	}
	for _, want := range []int{sweepAtMost, 1, 0} {
		swept, err := store.Sweep(t.Context(), 0, wanted)
		require.NoError(t, err)
		require.Equal(t, Swept{Pieces: want}, swept)
	}
}

func TestWhatIsUnwantedIsListedUnlessItHasANameOrIsYoung(t *testing.T) {
	t.Parallel()
	store, _ := setup(t)
	put := func(thread, content string) Ref {
		ref, err := store.Put(t.Context(), thread, []byte(content))
		require.NoError(t, err)
		return ref
	}
	void, named, gone := put("t1", "void"), put("t1", "the trail of an attempt"), put("t1", "gone")
	put("t2", "void")
	require.NoError(t, store.Name(t.Context(), "t1", AttemptName("run", 1), named))
	require.NoError(t, store.Delete(t.Context(), gone))
	ofOne := func(thread string, ref Ref) bool {
		require.True(t, ref.Valid(thread))
		return thread == "t1"
	}
	swept, err := store.Sweep(t.Context(), 0, ofOne)
	require.NoError(t, err)
	require.Equal(t, Swept{Unwanted: []Ref{void}}, swept)
	swept, err = store.Sweep(t.Context(), SafeAge, ofOne)
	require.NoError(t, err)
	require.Zero(t, swept)
	_, err = store.Get(t.Context(), void)
	require.NoError(t, err, "it is the caller's to remove")
}

// A server that came back and has not caught up shows fewer metas than there are: nothing may be taken for unnamed because of that.
func TestNothingIsSweptByMetasThatAreNotAllThere(t *testing.T) {
	t.Parallel()
	store, js := setup(t)
	_, err := store.Put(t.Context(), "t1", []byte("a report"))
	require.NoError(t, err)
	newest, err := store.newestMeta(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, newest, "behind its piece")
	var names []string
	require.NoError(t, store.metasTo(t.Context(), newest, func(i jetstream.ObjectInfo) { names = append(names, i.Name) }))
	require.Len(t, names, 1)
	require.ErrorIs(t, store.metasTo(t.Context(), newest+1, func(jetstream.ObjectInfo) {}), errBehind)

	require.NoError(t, store.stream.Purge(t.Context(), jetstream.WithPurgeSubject(metas)))
	require.ErrorIs(t, store.metasTo(t.Context(), newest, func(jetstream.ObjectInfo) {}), errBehind, "none at all")

	// Nor by one that cannot be read.
	_, err = js.Publish(t.Context(), "$O."+topology.StoreArtifacts+".M.eA==", []byte("no JSON"))
	require.NoError(t, err)
	_, err = store.Sweep(t.Context(), 0, wanted)
	require.Error(t, err)
	pieces, _ := objects(t, js)
	require.Equal(t, 1, pieces)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = store.Sweep(over, 0, wanted)
	require.ErrorIs(t, err, context.Canceled)
}
