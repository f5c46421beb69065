package replies_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/replies"
)

var (
	now  = time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)
	task = model.JudgeTask{Elder: model.Statement{Text: "a"}, Newer: model.Statement{Text: "b"}}
	key  = model.Key{Thread: "t1", Digest: "d", Cause: "event-1", Step: "judge/"}
)

func open(t *testing.T) (*replies.Store, jetstream.KeyValue) {
	t.Helper()
	_, _, js := bustest.Start(t)
	bucket := bustest.Bucket(t, js, topology.BucketReplies)
	return &replies.Store{Bucket: bucket, Now: func() time.Time { return now }, Patience: time.Second, Pause: 5 * time.Millisecond}, bucket
}

// says is a call that answers text and counts.
func says(text string, calls *atomic.Int32) func(context.Context) (model.Reply, error) {
	return func(context.Context) (model.Reply, error) {
		calls.Add(1)
		return model.Reply{Text: text, Engine: "ollama", Model: "m", Digest: "d", ReplyTokens: 3, Duration: time.Second}, nil
	}
}

func TestAReplyIsAskedForOnce(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	var calls atomic.Int32
	first, err := store.Do(t.Context(), key, task.Request(), says("one", &calls))
	require.NoError(t, err)
	require.False(t, first.Found)
	other := task
	other.Newer.Text = "something else by now"
	second, err := store.Do(t.Context(), key, other.Request(), says("two", &calls))
	require.NoError(t, err)
	require.True(t, second.Found)
	second.Found = false
	require.Equal(t, first, second, "the reply with the request that it answers")
	require.Equal(t, "one", second.Reply.Text)
	require.Equal(t, now, second.At)
	require.JSONEq(t, `{"elder":{"text":"a"},"newer":{"text":"b"}}`, string(second.Task))
	require.EqualValues(t, 1, calls.Load())

	for _, k := range []model.Key{
		{Thread: "t2", Digest: "d", Cause: "event-1", Step: "judge/"}, {Thread: "t1", Digest: "e", Cause: "event-1", Step: "judge/"},
		{Thread: "t1", Digest: "d", Cause: "event-2", Step: "judge/"}, {Thread: "t1", Digest: "d", Cause: "event-1", Step: "judge/again"},
		{Thread: "t1", Digest: "de", Cause: "vent-1", Step: "judge/"},
	} {
		record, err := store.Do(t.Context(), k, task.Request(), says("other", &calls))
		require.NoError(t, err)
		require.False(t, record.Found, k)
	}
}

func TestAFailedCallKeepsNothing(t *testing.T) {
	t.Parallel()
	store, bucket := open(t)
	_, err := store.Do(t.Context(), key, task.Request(), func(context.Context) (model.Reply, error) { return model.Reply{}, model.ErrAway })
	require.ErrorIs(t, err, model.ErrAway)
	_, err = bucket.Keys(t.Context())
	require.ErrorIs(t, err, jetstream.ErrNoKeysFound)
}

func TestOfTwoAtOnceTheFirstKeptStands(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	var calls atomic.Int32
	var inner model.Record
	outer, err := store.Do(t.Context(), key, task.Request(), func(ctx context.Context) (reply model.Reply, err error) {
		inner, err = store.Do(ctx, key, task.Request(), says("first", &calls)) // another worker, faster
		require.NoError(t, err)
		return says("second", &calls)(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, "first", inner.Reply.Text)
	require.Equal(t, "first", outer.Reply.Text)
	require.True(t, outer.Found)
}

func TestAnUnreadableRecordIsReplaced(t *testing.T) {
	t.Parallel()
	store, bucket := open(t)
	name, err := replies.Name(key)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), name, []byte("not gzip"))
	require.NoError(t, err)
	var calls atomic.Int32
	for range 2 {
		record, err := store.Do(t.Context(), key, task.Request(), says("new", &calls))
		require.NoError(t, err)
		require.Equal(t, "new", record.Reply.Text)
	}
	require.EqualValues(t, 1, calls.Load())
}

func TestAReplyTooLargeIsAClearError(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	var calls atomic.Int32
	_, err := store.Do(t.Context(), key, task.Request(), says(strings.Repeat("long ", 1<<20), &calls))
	require.NoError(t, err, "5 MB that pack well")
	noise := make([]byte, 1<<20)
	_, err = rand.Read(noise)
	require.NoError(t, err)
	other := key
	other.Cause = "event-2"
	_, err = store.Do(t.Context(), other, task.Request(), says(hex.EncodeToString(noise), &calls))
	require.ErrorIs(t, err, replies.ErrTooLarge)
}

func TestDeleteThreadTakesItsRepliesOnly(t *testing.T) {
	t.Parallel()
	store, bucket := open(t)
	var calls atomic.Int32
	for _, k := range []model.Key{key, {Thread: "t1", Cause: "2"}, {Thread: "t11", Cause: "1"}, {Thread: "t", Cause: "1"}} {
		_, err := store.Do(t.Context(), k, task.Request(), says("x", &calls))
		require.NoError(t, err)
	}
	n, err := store.DeleteThread(t.Context(), "t1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	keys, err := bucket.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 2)
	n, err = store.DeleteThread(t.Context(), "t1")
	require.NoError(t, err)
	require.Zero(t, n)
	for _, bad := range []string{"", "*", ">", "a.b", "a b"} {
		_, err := store.DeleteThread(t.Context(), bad)
		require.Error(t, err, bad)
		_, err = store.Do(t.Context(), model.Key{Thread: bad}, task.Request(), says("x", &calls))
		require.Error(t, err, bad)
	}
}

// flaky is a bucket that refuses.
type flaky struct {
	replies.Bucket
	mu       sync.Mutex
	gets     error
	creates  int // how many Creates fail
	attempts int
}

var errBus = errors.New("no responders")

func (f *flaky) Get(ctx context.Context, name string) (jetstream.KeyValueEntry, error) {
	if f.gets != nil {
		return nil, f.gets
	}
	return f.Bucket.Get(ctx, name)
}

func (f *flaky) Create(ctx context.Context, name string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts++
	if f.attempts <= f.creates {
		return 0, errBus
	}
	return f.Bucket.Create(ctx, name, value, opts...)
}

func TestTheBusAway(t *testing.T) {
	t.Parallel()
	store, bucket := open(t)
	var calls atomic.Int32

	store.Bucket = &flaky{Bucket: bucket, gets: errBus}
	_, err := store.Do(t.Context(), key, task.Request(), says("x", &calls))
	require.ErrorIs(t, err, errBus)
	require.Zero(t, calls.Load(), "nothing is asked that may be known")

	store.Bucket = &flaky{Bucket: bucket, creates: 5}
	_, err = store.Do(t.Context(), key, task.Request(), says("x", &calls))
	require.NoError(t, err, "keeping is tried again")
	require.EqualValues(t, 1, calls.Load())

	store.Bucket, store.Patience = &flaky{Bucket: bucket, creates: 1 << 30}, 30*time.Millisecond
	other := key
	other.Cause = "event-2"
	_, err = store.Do(t.Context(), other, task.Request(), says("x", &calls))
	require.ErrorIs(t, err, errBus, "a reply that cannot be kept is not used")

	store.Patience = time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err = store.Do(ctx, other, task.Request(), func(ctx context.Context) (model.Reply, error) {
		cancel(stop)
		return says("x", &calls)(ctx)
	})
	require.ErrorIs(t, err, stop)
}

func TestAStepIsHarmlessWhenItComesAgain(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	m := &counted{}
	for range 3 {
		v, err := model.Judge(t.Context(), model.Call{Model: m, Replies: store, Thread: "t1", Trigger: "event-1"}, task)
		require.NoError(t, err)
		require.Equal(t, model.Distinct, v.Relation)
		require.Equal(t, 2, v.Tries, "the refused reply is known as well")
	}
	require.EqualValues(t, 2, m.calls.Load())
}

// counted is a model whose first reply is bad.
type counted struct{ calls atomic.Int32 }

func (*counted) Info(context.Context) (model.Info, error) {
	return model.Info{Engine: "x", ChatDigest: "d"}, nil
}

func (m *counted) Generate(context.Context, model.Request) (model.Reply, error) {
	if m.calls.Add(1) == 1 {
		return model.Reply{Text: "Sorry."}, nil
	}
	return model.Reply{Text: `{"reason":"","relation":"distinct"}`}, nil
}

func (*counted) Embed(context.Context, []string, model.EmbedKind) ([][]float32, error) {
	return nil, nil
}
