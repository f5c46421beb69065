package connect_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
)

// call is one use of the bus under a context; an error of a list comes from its end.
type call func(ctx context.Context) error

// opened is one of each thing that a bus gives.
type opened struct {
	js       jetstream.JetStream
	stream   jetstream.Stream
	consumer jetstream.Consumer
	bucket   jetstream.KeyValue
	objects  jetstream.ObjectStore
}

func TestARequestWithoutAnswerEndsLongBeforeItsContext(t *testing.T) {
	t.Parallel()
	bus, line := open(t, 300*time.Millisecond)
	line.LoseAll()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()

	var calls sync.WaitGroup
	var mu sync.Mutex
	waiting := map[string]bool{}
	for name, do := range everyCall(bus) {
		waiting[name] = true
		calls.Go(func() {
			err := do(ctx)
			mu.Lock()
			defer mu.Unlock()
			delete(waiting, name)
			if err == nil {
				t.Errorf("%s: no error though nobody answered", name)
			}
		})
	}
	ended := make(chan struct{})
	go func() { calls.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(bustest.Patience):
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, waiting, "still waiting for an answer")
	}
	require.NoError(t, ctx.Err())
}

func TestWhatOnlyReadsIsAskedAgainWhenAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	reading := []string{
		"JetStream.AccountInfo", "JetStream.Stream", "JetStream.StreamNameBySubject", "JetStream.Consumer", "JetStream.KeyValue", "JetStream.ObjectStore",
		"Stream.Info", "Stream.GetMsg", "Stream.GetLastMsgForSubject", "Stream.Consumer",
		"Consumer.Info", "KeyValue.Get", "KeyValue.GetRevision", "KeyValue.Status", "ObjectStore.GetInfo", "ObjectStore.Status",
	}
	srv := serve(t)
	bus, _ := through(t, srv, bustest.Patience)
	_, err := bus.bucket.Create(t.Context(), "key", []byte("value"))
	require.NoError(t, err)
	_, err = bus.objects.PutString(t.Context(), "object", "value")
	require.NoError(t, err)
	var calls sync.WaitGroup
	for _, name := range reading {
		bus, line := through(t, srv, bustest.Patience)
		line.Lose(1)
		calls.Go(func() {
			assert.NoError(t, everyCall(bus)[name](t.Context()), name)
			assert.Zero(t, line.Left(), name)
		})
	}
	calls.Wait()
}

func TestWhatWritesIsSentOnce(t *testing.T) {
	t.Parallel()
	bus, line := open(t, 300*time.Millisecond)
	line.Lose(1)
	_, err := bus.bucket.Put(t.Context(), "key", []byte("lost"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, line.Left())
	_, err = bus.bucket.Get(t.Context(), "key")
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
}

func TestARequestStillEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bus, line := open(t, time.Hour)
	line.LoseAll()
	for name, do := range everyCall(bus) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, do(ctx), name)
	}
}

// The contexts of these are not those of one request: they are bounded by who calls.
var content = []string{"ObjectStore.Get", "ObjectStore.GetBytes", "ObjectStore.GetString", "ObjectStore.GetFile"}

// A method that a new version of the library brings must be bounded and come into
// everyCall.
func TestEveryRequestOfTheLibraryIsBounded(t *testing.T) {
	t.Parallel()
	known := everyCall(opened{})
	for _, name := range content {
		known[name] = nil
	}
	withContext := reflect.TypeFor[context.Context]()
	for _, made := range []reflect.Type{
		reflect.TypeFor[jetstream.JetStream](), reflect.TypeFor[jetstream.Stream](), reflect.TypeFor[jetstream.Consumer](),
		reflect.TypeFor[jetstream.KeyValue](), reflect.TypeFor[jetstream.ObjectStore](),
	} {
		for i := range made.NumMethod() {
			method := made.Method(i)
			if method.Type.NumIn() > 0 && method.Type.In(0) == withContext {
				require.Contains(t, known, made.Name()+"."+method.Name)
			}
		}
	}
}

// everyCall has each method of the library that takes a context, with arguments that
// make it ask the server.
func everyCall(b opened) map[string]call {
	stream, durable := topology.Notebook, topology.Judge
	pull := jetstream.ConsumerConfig{Durable: "own", AckPolicy: jetstream.AckExplicitPolicy}
	ordered := jetstream.OrderedConsumerConfig{}
	pushed := jetstream.ConsumerConfig{Durable: "pushed", DeliverSubject: "to.me"}
	cfg := jetstream.StreamConfig{Name: "OWN", Subjects: []string{"own"}}
	kv := jetstream.KeyValueConfig{Bucket: "own"}
	obj := jetstream.ObjectStoreConfig{Bucket: "own"}
	until := time.Unix(1<<32, 0)
	return map[string]call{
		"JetStream.AccountInfo": func(ctx context.Context) error { _, err := b.js.AccountInfo(ctx); return err },
		"JetStream.Publish":     func(ctx context.Context) error { _, err := b.js.Publish(ctx, "x", nil); return err },
		"JetStream.PublishMsg": func(ctx context.Context) error {
			_, err := b.js.PublishMsg(ctx, nats.NewMsg("x"))
			return err
		},
		"JetStream.CreateStream":         func(ctx context.Context) error { _, err := b.js.CreateStream(ctx, cfg); return err },
		"JetStream.UpdateStream":         func(ctx context.Context) error { _, err := b.js.UpdateStream(ctx, cfg); return err },
		"JetStream.CreateOrUpdateStream": func(ctx context.Context) error { _, err := b.js.CreateOrUpdateStream(ctx, cfg); return err },
		"JetStream.Stream":               func(ctx context.Context) error { _, err := b.js.Stream(ctx, stream); return err },
		"JetStream.StreamNameBySubject": func(ctx context.Context) error {
			_, err := b.js.StreamNameBySubject(ctx, topology.DeadSubject("x"))
			return err
		},
		"JetStream.DeleteStream": func(ctx context.Context) error { return b.js.DeleteStream(ctx, "OWN") },
		"JetStream.ListStreams": func(ctx context.Context) error {
			l := b.js.ListStreams(ctx)
			return ended(l.Info(), l.Err)
		},
		"JetStream.StreamNames": func(ctx context.Context) error {
			l := b.js.StreamNames(ctx)
			return ended(l.Name(), l.Err)
		},
		"JetStream.CreateOrUpdateConsumer": func(ctx context.Context) error {
			_, err := b.js.CreateOrUpdateConsumer(ctx, stream, pull)
			return err
		},
		"JetStream.CreateConsumer":  func(ctx context.Context) error { _, err := b.js.CreateConsumer(ctx, stream, pull); return err },
		"JetStream.UpdateConsumer":  func(ctx context.Context) error { _, err := b.js.UpdateConsumer(ctx, stream, pull); return err },
		"JetStream.OrderedConsumer": func(ctx context.Context) error { _, err := b.js.OrderedConsumer(ctx, stream, ordered); return err },
		"JetStream.Consumer":        func(ctx context.Context) error { _, err := b.js.Consumer(ctx, stream, durable); return err },
		"JetStream.DeleteConsumer":  func(ctx context.Context) error { return b.js.DeleteConsumer(ctx, stream, "own") },
		"JetStream.PauseConsumer": func(ctx context.Context) error {
			_, err := b.js.PauseConsumer(ctx, stream, durable, until)
			return err
		},
		"JetStream.ResumeConsumer": func(ctx context.Context) error { _, err := b.js.ResumeConsumer(ctx, stream, durable); return err },
		"JetStream.ResetConsumer":  func(ctx context.Context) error { _, err := b.js.ResetConsumer(ctx, stream, "own"); return err },
		"JetStream.ResetConsumerToSequence": func(ctx context.Context) error {
			_, err := b.js.ResetConsumerToSequence(ctx, stream, "own", 1)
			return err
		},
		"JetStream.CreateOrUpdatePushConsumer": func(ctx context.Context) error {
			_, err := b.js.CreateOrUpdatePushConsumer(ctx, stream, pushed)
			return err
		},
		"JetStream.CreatePushConsumer": func(ctx context.Context) error {
			_, err := b.js.CreatePushConsumer(ctx, stream, pushed)
			return err
		},
		"JetStream.UpdatePushConsumer": func(ctx context.Context) error {
			_, err := b.js.UpdatePushConsumer(ctx, stream, pushed)
			return err
		},
		"JetStream.PushConsumer":           func(ctx context.Context) error { _, err := b.js.PushConsumer(ctx, stream, "pushed"); return err },
		"JetStream.KeyValue":               func(ctx context.Context) error { _, err := b.js.KeyValue(ctx, topology.BucketSettings); return err },
		"JetStream.CreateKeyValue":         func(ctx context.Context) error { _, err := b.js.CreateKeyValue(ctx, kv); return err },
		"JetStream.UpdateKeyValue":         func(ctx context.Context) error { _, err := b.js.UpdateKeyValue(ctx, kv); return err },
		"JetStream.CreateOrUpdateKeyValue": func(ctx context.Context) error { _, err := b.js.CreateOrUpdateKeyValue(ctx, kv); return err },
		"JetStream.DeleteKeyValue":         func(ctx context.Context) error { return b.js.DeleteKeyValue(ctx, "own") },
		"JetStream.KeyValueStoreNames": func(ctx context.Context) error {
			l := b.js.KeyValueStoreNames(ctx)
			return ended(l.Name(), l.Error)
		},
		"JetStream.KeyValueStores": func(ctx context.Context) error {
			l := b.js.KeyValueStores(ctx)
			return ended(l.Status(), l.Error)
		},
		"JetStream.ObjectStore":               func(ctx context.Context) error { _, err := b.js.ObjectStore(ctx, topology.StoreArtifacts); return err },
		"JetStream.CreateObjectStore":         func(ctx context.Context) error { _, err := b.js.CreateObjectStore(ctx, obj); return err },
		"JetStream.UpdateObjectStore":         func(ctx context.Context) error { _, err := b.js.UpdateObjectStore(ctx, obj); return err },
		"JetStream.CreateOrUpdateObjectStore": func(ctx context.Context) error { _, err := b.js.CreateOrUpdateObjectStore(ctx, obj); return err },
		"JetStream.DeleteObjectStore":         func(ctx context.Context) error { return b.js.DeleteObjectStore(ctx, "own") },
		"JetStream.ObjectStoreNames": func(ctx context.Context) error {
			l := b.js.ObjectStoreNames(ctx)
			return ended(l.Name(), l.Error)
		},
		"JetStream.ObjectStores": func(ctx context.Context) error {
			l := b.js.ObjectStores(ctx)
			return ended(l.Status(), l.Error)
		},

		"Stream.Info":   func(ctx context.Context) error { _, err := b.stream.Info(ctx); return err },
		"Stream.Purge":  func(ctx context.Context) error { return b.stream.Purge(ctx, jetstream.WithPurgeSubject("none")) },
		"Stream.GetMsg": func(ctx context.Context) error { _, err := b.stream.GetMsg(ctx, 1); return err },
		"Stream.GetLastMsgForSubject": func(ctx context.Context) error {
			_, err := b.stream.GetLastMsgForSubject(ctx, topology.DeadSubject("x"))
			return err
		},
		"Stream.DeleteMsg":              func(ctx context.Context) error { return b.stream.DeleteMsg(ctx, 1) },
		"Stream.SecureDeleteMsg":        func(ctx context.Context) error { return b.stream.SecureDeleteMsg(ctx, 1) },
		"Stream.CreateOrUpdateConsumer": func(ctx context.Context) error { _, err := b.stream.CreateOrUpdateConsumer(ctx, pull); return err },
		"Stream.CreateConsumer":         func(ctx context.Context) error { _, err := b.stream.CreateConsumer(ctx, pull); return err },
		"Stream.UpdateConsumer":         func(ctx context.Context) error { _, err := b.stream.UpdateConsumer(ctx, pull); return err },
		"Stream.OrderedConsumer":        func(ctx context.Context) error { _, err := b.stream.OrderedConsumer(ctx, ordered); return err },
		"Stream.Consumer":               func(ctx context.Context) error { _, err := b.stream.Consumer(ctx, "reader"); return err },
		"Stream.DeleteConsumer":         func(ctx context.Context) error { return b.stream.DeleteConsumer(ctx, "own") },
		"Stream.PauseConsumer":          func(ctx context.Context) error { _, err := b.stream.PauseConsumer(ctx, "own", until); return err },
		"Stream.ResumeConsumer":         func(ctx context.Context) error { _, err := b.stream.ResumeConsumer(ctx, "own"); return err },
		"Stream.ListConsumers": func(ctx context.Context) error {
			l := b.stream.ListConsumers(ctx)
			return ended(l.Info(), l.Err)
		},
		"Stream.ConsumerNames": func(ctx context.Context) error {
			l := b.stream.ConsumerNames(ctx)
			return ended(l.Name(), l.Err)
		},
		"Stream.UnpinConsumer":           func(ctx context.Context) error { return b.stream.UnpinConsumer(ctx, "own", "group") },
		"Stream.ResetConsumer":           func(ctx context.Context) error { _, err := b.stream.ResetConsumer(ctx, "own"); return err },
		"Stream.ResetConsumerToSequence": func(ctx context.Context) error { _, err := b.stream.ResetConsumerToSequence(ctx, "own", 1); return err },
		"Stream.CreateOrUpdatePushConsumer": func(ctx context.Context) error {
			_, err := b.stream.CreateOrUpdatePushConsumer(ctx, pushed)
			return err
		},
		"Stream.CreatePushConsumer": func(ctx context.Context) error { _, err := b.stream.CreatePushConsumer(ctx, pushed); return err },
		"Stream.UpdatePushConsumer": func(ctx context.Context) error { _, err := b.stream.UpdatePushConsumer(ctx, pushed); return err },
		"Stream.PushConsumer":       func(ctx context.Context) error { _, err := b.stream.PushConsumer(ctx, "pushed"); return err },

		"Consumer.Info": func(ctx context.Context) error { _, err := b.consumer.Info(ctx); return err },

		"KeyValue.Get":           func(ctx context.Context) error { _, err := b.bucket.Get(ctx, "key"); return err },
		"KeyValue.GetRevision":   func(ctx context.Context) error { _, err := b.bucket.GetRevision(ctx, "key", 1); return err },
		"KeyValue.Put":           func(ctx context.Context) error { _, err := b.bucket.Put(ctx, "key", nil); return err },
		"KeyValue.PutString":     func(ctx context.Context) error { _, err := b.bucket.PutString(ctx, "key", ""); return err },
		"KeyValue.Create":        func(ctx context.Context) error { _, err := b.bucket.Create(ctx, "key", nil); return err },
		"KeyValue.Update":        func(ctx context.Context) error { _, err := b.bucket.Update(ctx, "key", nil, 1); return err },
		"KeyValue.Delete":        func(ctx context.Context) error { return b.bucket.Delete(ctx, "key") },
		"KeyValue.Purge":         func(ctx context.Context) error { return b.bucket.Purge(ctx, "key") },
		"KeyValue.Watch":         func(ctx context.Context) error { _, err := b.bucket.Watch(ctx, "key"); return err },
		"KeyValue.WatchAll":      func(ctx context.Context) error { _, err := b.bucket.WatchAll(ctx); return err },
		"KeyValue.WatchFiltered": func(ctx context.Context) error { _, err := b.bucket.WatchFiltered(ctx, []string{"key"}); return err },
		"KeyValue.Keys":          func(ctx context.Context) error { _, err := b.bucket.Keys(ctx); return err },
		"KeyValue.ListKeys":      func(ctx context.Context) error { _, err := b.bucket.ListKeys(ctx); return err },
		"KeyValue.ListKeysFiltered": func(ctx context.Context) error {
			_, err := b.bucket.ListKeysFiltered(ctx, "key")
			return err
		},
		"KeyValue.History":      func(ctx context.Context) error { _, err := b.bucket.History(ctx, "key"); return err },
		"KeyValue.PurgeDeletes": func(ctx context.Context) error { return b.bucket.PurgeDeletes(ctx) },
		"KeyValue.Status":       func(ctx context.Context) error { _, err := b.bucket.Status(ctx); return err },

		"ObjectStore.Put": func(ctx context.Context) error {
			_, err := b.objects.Put(ctx, jetstream.ObjectMeta{Name: "object"}, strings.NewReader("value"))
			return err
		},
		"ObjectStore.PutBytes":  func(ctx context.Context) error { _, err := b.objects.PutBytes(ctx, "object", nil); return err },
		"ObjectStore.PutString": func(ctx context.Context) error { _, err := b.objects.PutString(ctx, "object", ""); return err },
		"ObjectStore.PutFile":   func(ctx context.Context) error { _, err := b.objects.PutFile(ctx, "request_test.go"); return err },
		"ObjectStore.GetInfo":   func(ctx context.Context) error { _, err := b.objects.GetInfo(ctx, "object"); return err },
		"ObjectStore.UpdateMeta": func(ctx context.Context) error {
			return b.objects.UpdateMeta(ctx, "object", jetstream.ObjectMeta{Name: "object"})
		},
		"ObjectStore.Delete": func(ctx context.Context) error { return b.objects.Delete(ctx, "object") },
		"ObjectStore.AddLink": func(ctx context.Context) error {
			_, err := b.objects.AddLink(ctx, "link", &jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: "object"}, Bucket: topology.StoreArtifacts})
			return err
		},
		"ObjectStore.AddBucketLink": func(ctx context.Context) error { _, err := b.objects.AddBucketLink(ctx, "link", b.objects); return err },
		"ObjectStore.Seal":          func(ctx context.Context) error { return b.objects.Seal(ctx) },
		"ObjectStore.Watch":         func(ctx context.Context) error { _, err := b.objects.Watch(ctx); return err },
		"ObjectStore.List":          func(ctx context.Context) error { _, err := b.objects.List(ctx); return err },
		"ObjectStore.Status":        func(ctx context.Context) error { _, err := b.objects.Status(ctx); return err },
	}
}

// ended reads a list to its end and says how that came.
func ended[T any](list <-chan T, err func() error) error {
	for range list {
	}
	return err()
}

func open(t *testing.T, timeout time.Duration) (opened, *bustest.Line) {
	t.Helper()
	return through(t, serve(t), timeout)
}

// serve starts a bus with one dead letter and a reader of it.
func serve(t *testing.T) *embedded.Server {
	t.Helper()
	srv, _, js := bustest.Start(t)
	_, err := js.Publish(t.Context(), topology.DeadSubject("x"), nil)
	require.NoError(t, err)
	_, err = js.CreateConsumer(t.Context(), topology.Dead, jetstream.ConsumerConfig{Durable: "reader"})
	require.NoError(t, err)
	return srv
}

// through connects through a line that can lose requests.
func through(t *testing.T, srv *embedded.Server, timeout time.Duration) (opened, *bustest.Line) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	l := bustest.Between(t, srv)
	nc, js, err := connect.Dial(ctx, connect.Config{
		URL: l.URL(), CredentialsFile: srv.CredentialsFile(), RequestTimeout: timeout, Logger: zerolog.Nop(),
	})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	b := opened{js: js}
	b.stream, err = js.Stream(ctx, topology.Dead)
	require.NoError(t, err)
	b.consumer, err = js.Consumer(ctx, topology.Notebook, topology.Judge)
	require.NoError(t, err)
	b.bucket, err = js.KeyValue(ctx, topology.BucketSettings)
	require.NoError(t, err)
	b.objects, err = js.ObjectStore(ctx, topology.StoreArtifacts)
	require.NoError(t, err)
	return b, l
}
