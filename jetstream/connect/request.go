package connect

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DefaultRequestTimeout is how long one request to the bus waits for its answer.
const DefaultRequestTimeout = 5 * time.Second

// firstTry is how long a request that only reads waits before it is sent once more.
const firstTry = 2 * time.Second

// bus is a JetStream on which no request waits longer for its answer than the
// library's default timeout, however late the deadline of its context is: a request
// that was with a server when that died is never answered, and the library leaves
// its timeout out for a context that has any deadline. What only reads is asked
// twice, so that one lost answer is no error; what writes is asked once, since only
// the caller knows what a lost answer means. Streams, consumers, buckets and object
// stores that come of it are the same.
type bus struct {
	jetstream.JetStream
}

// unhurried is a context that ends as its parent does, but whose deadline nobody
// sees: with it the library waits for its own timeout, on each request anew.
type unhurried struct{ context.Context }

func (unhurried) Deadline() (time.Time, bool) { return time.Time{}, false }

// read asks, and asks once more when no answer came.
func read[T any](ctx context.Context, ask func(ctx context.Context) (T, error)) (T, error) {
	try, cancel := context.WithTimeout(ctx, firstTry)
	answer, err := ask(try)
	cancel()
	if !Unanswered(err) || ctx.Err() != nil {
		return answer, err
	}
	return ask(unhurried{ctx})
}

// Unanswered says whether err is that of a request whose answer did not come in
// time: if it was to write something, it may have done so, or may still do.
func Unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// limited is for the lists to which the library gives no timeout of its own: all of
// one has the time of one request.
func (b bus) limited(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, b.Options().DefaultTimeout)
	context.AfterFunc(ctx, cancel) // the list goes on after it was returned
	return ctx
}

// like wraps what a request gave, unless it failed.
func like[T any](made T, err error, wrap func(T) T) (T, error) {
	if err != nil {
		return made, err
	}
	return wrap(made), nil
}

func asStream(s jetstream.Stream) jetstream.Stream            { return stream{s} }
func asConsumer(c jetstream.Consumer) jetstream.Consumer      { return consumer{c} }
func asPush(c jetstream.PushConsumer) jetstream.PushConsumer  { return push{c} }
func asBucket(b jetstream.KeyValue) jetstream.KeyValue        { return bucket{b} }
func asObjects(o jetstream.ObjectStore) jetstream.ObjectStore { return objects{o} }

func (b bus) AccountInfo(ctx context.Context) (*jetstream.AccountInfo, error) {
	return read(ctx, b.JetStream.AccountInfo)
}

func (b bus) Publish(ctx context.Context, subject string, payload []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return b.JetStream.Publish(unhurried{ctx}, subject, payload, opts...)
}

func (b bus) PublishMsg(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return b.JetStream.PublishMsg(unhurried{ctx}, msg, opts...)
}

func (b bus) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.JetStream.CreateStream(unhurried{ctx}, cfg)
	return like(s, err, asStream)
}

func (b bus) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.JetStream.UpdateStream(unhurried{ctx}, cfg)
	return like(s, err, asStream)
}

func (b bus) CreateOrUpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.JetStream.CreateOrUpdateStream(unhurried{ctx}, cfg)
	return like(s, err, asStream)
}

func (b bus) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := read(ctx, func(ctx context.Context) (jetstream.Stream, error) { return b.JetStream.Stream(ctx, name) })
	return like(s, err, asStream)
}

func (b bus) StreamNameBySubject(ctx context.Context, subject string) (string, error) {
	return read(ctx, func(ctx context.Context) (string, error) { return b.JetStream.StreamNameBySubject(ctx, subject) })
}

func (b bus) DeleteStream(ctx context.Context, name string) error {
	return b.JetStream.DeleteStream(unhurried{ctx}, name)
}

func (b bus) ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister {
	return b.JetStream.ListStreams(unhurried{ctx}, opts...)
}

func (b bus) StreamNames(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamNameLister {
	return b.JetStream.StreamNames(unhurried{ctx}, opts...)
}

func (b bus) CreateOrUpdateConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := b.JetStream.CreateOrUpdateConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asConsumer)
}

func (b bus) CreateConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := b.JetStream.CreateConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asConsumer)
}

func (b bus) UpdateConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := b.JetStream.UpdateConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asConsumer)
}

func (b bus) OrderedConsumer(ctx context.Context, of string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	c, err := b.JetStream.OrderedConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asConsumer)
}

func (b bus) Consumer(ctx context.Context, of, name string) (jetstream.Consumer, error) {
	c, err := read(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return b.JetStream.Consumer(ctx, of, name) })
	return like(c, err, asConsumer)
}

func (b bus) DeleteConsumer(ctx context.Context, of, name string) error {
	return b.JetStream.DeleteConsumer(unhurried{ctx}, of, name)
}

func (b bus) PauseConsumer(ctx context.Context, of, name string, until time.Time) (*jetstream.ConsumerPauseResponse, error) {
	return b.JetStream.PauseConsumer(unhurried{ctx}, of, name, until)
}

func (b bus) ResumeConsumer(ctx context.Context, of, name string) (*jetstream.ConsumerPauseResponse, error) {
	return b.JetStream.ResumeConsumer(unhurried{ctx}, of, name)
}

func (b bus) ResetConsumer(ctx context.Context, of, name string) (*jetstream.ConsumerResetResponse, error) {
	return b.JetStream.ResetConsumer(unhurried{ctx}, of, name)
}

func (b bus) ResetConsumerToSequence(ctx context.Context, of, name string, seq uint64) (*jetstream.ConsumerResetResponse, error) {
	return b.JetStream.ResetConsumerToSequence(unhurried{ctx}, of, name, seq)
}

func (b bus) CreateOrUpdatePushConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := b.JetStream.CreateOrUpdatePushConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asPush)
}

func (b bus) CreatePushConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := b.JetStream.CreatePushConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asPush)
}

func (b bus) UpdatePushConsumer(ctx context.Context, of string, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := b.JetStream.UpdatePushConsumer(unhurried{ctx}, of, cfg)
	return like(c, err, asPush)
}

func (b bus) PushConsumer(ctx context.Context, of, name string) (jetstream.PushConsumer, error) {
	c, err := read(ctx, func(ctx context.Context) (jetstream.PushConsumer, error) {
		return b.JetStream.PushConsumer(ctx, of, name)
	})
	return like(c, err, asPush)
}

func (b bus) KeyValue(ctx context.Context, name string) (jetstream.KeyValue, error) {
	kv, err := read(ctx, func(ctx context.Context) (jetstream.KeyValue, error) { return b.JetStream.KeyValue(ctx, name) })
	return like(kv, err, asBucket)
}

func (b bus) CreateKeyValue(ctx context.Context, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := b.JetStream.CreateKeyValue(unhurried{ctx}, cfg)
	return like(kv, err, asBucket)
}

func (b bus) UpdateKeyValue(ctx context.Context, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := b.JetStream.UpdateKeyValue(unhurried{ctx}, cfg)
	return like(kv, err, asBucket)
}

func (b bus) CreateOrUpdateKeyValue(ctx context.Context, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := b.JetStream.CreateOrUpdateKeyValue(unhurried{ctx}, cfg)
	return like(kv, err, asBucket)
}

func (b bus) DeleteKeyValue(ctx context.Context, name string) error {
	return b.JetStream.DeleteKeyValue(unhurried{ctx}, name)
}

func (b bus) KeyValueStoreNames(ctx context.Context) jetstream.KeyValueNamesLister {
	return b.JetStream.KeyValueStoreNames(b.limited(ctx))
}

func (b bus) KeyValueStores(ctx context.Context) jetstream.KeyValueLister {
	return b.JetStream.KeyValueStores(b.limited(ctx))
}

func (b bus) ObjectStore(ctx context.Context, name string) (jetstream.ObjectStore, error) {
	o, err := read(ctx, func(ctx context.Context) (jetstream.ObjectStore, error) { return b.JetStream.ObjectStore(ctx, name) })
	return like(o, err, asObjects)
}

func (b bus) CreateObjectStore(ctx context.Context, cfg jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	o, err := b.JetStream.CreateObjectStore(unhurried{ctx}, cfg)
	return like(o, err, asObjects)
}

func (b bus) UpdateObjectStore(ctx context.Context, cfg jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	o, err := b.JetStream.UpdateObjectStore(unhurried{ctx}, cfg)
	return like(o, err, asObjects)
}

func (b bus) CreateOrUpdateObjectStore(ctx context.Context, cfg jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	o, err := b.JetStream.CreateOrUpdateObjectStore(unhurried{ctx}, cfg)
	return like(o, err, asObjects)
}

func (b bus) DeleteObjectStore(ctx context.Context, name string) error {
	return b.JetStream.DeleteObjectStore(unhurried{ctx}, name)
}

func (b bus) ObjectStoreNames(ctx context.Context) jetstream.ObjectStoreNamesLister {
	return b.JetStream.ObjectStoreNames(b.limited(ctx))
}

func (b bus) ObjectStores(ctx context.Context) jetstream.ObjectStoresLister {
	return b.JetStream.ObjectStores(b.limited(ctx))
}

// stream is a stream of a bus.
type stream struct{ jetstream.Stream }

func (s stream) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return read(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return s.Stream.Info(ctx, opts...) })
}

func (s stream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	return s.Stream.Purge(unhurried{ctx}, opts...)
}

func (s stream) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	return read(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return s.Stream.GetMsg(ctx, seq, opts...) })
}

func (s stream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return read(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.Stream.GetLastMsgForSubject(ctx, subject)
	})
}

func (s stream) DeleteMsg(ctx context.Context, seq uint64) error {
	return s.Stream.DeleteMsg(unhurried{ctx}, seq)
}

func (s stream) SecureDeleteMsg(ctx context.Context, seq uint64) error {
	return s.Stream.SecureDeleteMsg(unhurried{ctx}, seq)
}

func (s stream) CreateOrUpdateConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.Stream.CreateOrUpdateConsumer(unhurried{ctx}, cfg)
	return like(c, err, asConsumer)
}

func (s stream) CreateConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.Stream.CreateConsumer(unhurried{ctx}, cfg)
	return like(c, err, asConsumer)
}

func (s stream) UpdateConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.Stream.UpdateConsumer(unhurried{ctx}, cfg)
	return like(c, err, asConsumer)
}

func (s stream) OrderedConsumer(ctx context.Context, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.Stream.OrderedConsumer(unhurried{ctx}, cfg)
	return like(c, err, asConsumer)
}

func (s stream) Consumer(ctx context.Context, name string) (jetstream.Consumer, error) {
	c, err := read(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return s.Stream.Consumer(ctx, name) })
	return like(c, err, asConsumer)
}

func (s stream) DeleteConsumer(ctx context.Context, name string) error {
	return s.Stream.DeleteConsumer(unhurried{ctx}, name)
}

func (s stream) PauseConsumer(ctx context.Context, name string, until time.Time) (*jetstream.ConsumerPauseResponse, error) {
	return s.Stream.PauseConsumer(unhurried{ctx}, name, until)
}

func (s stream) ResumeConsumer(ctx context.Context, name string) (*jetstream.ConsumerPauseResponse, error) {
	return s.Stream.ResumeConsumer(unhurried{ctx}, name)
}

func (s stream) ListConsumers(ctx context.Context) jetstream.ConsumerInfoLister {
	return s.Stream.ListConsumers(unhurried{ctx})
}

func (s stream) ConsumerNames(ctx context.Context) jetstream.ConsumerNameLister {
	return s.Stream.ConsumerNames(unhurried{ctx})
}

func (s stream) UnpinConsumer(ctx context.Context, name, group string) error {
	return s.Stream.UnpinConsumer(unhurried{ctx}, name, group)
}

func (s stream) ResetConsumer(ctx context.Context, name string) (*jetstream.ConsumerResetResponse, error) {
	return s.Stream.ResetConsumer(unhurried{ctx}, name)
}

func (s stream) ResetConsumerToSequence(ctx context.Context, name string, seq uint64) (*jetstream.ConsumerResetResponse, error) {
	return s.Stream.ResetConsumerToSequence(unhurried{ctx}, name, seq)
}

func (s stream) CreateOrUpdatePushConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := s.Stream.CreateOrUpdatePushConsumer(unhurried{ctx}, cfg)
	return like(c, err, asPush)
}

func (s stream) CreatePushConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := s.Stream.CreatePushConsumer(unhurried{ctx}, cfg)
	return like(c, err, asPush)
}

func (s stream) UpdatePushConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.PushConsumer, error) {
	c, err := s.Stream.UpdatePushConsumer(unhurried{ctx}, cfg)
	return like(c, err, asPush)
}

func (s stream) PushConsumer(ctx context.Context, name string) (jetstream.PushConsumer, error) {
	c, err := read(ctx, func(ctx context.Context) (jetstream.PushConsumer, error) { return s.Stream.PushConsumer(ctx, name) })
	return like(c, err, asPush)
}

// consumer is a consumer of a bus.
type consumer struct{ jetstream.Consumer }

func (c consumer) Info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	return read(ctx, c.Consumer.Info)
}

// push is a push consumer of a bus.
type push struct{ jetstream.PushConsumer }

func (p push) Info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	return read(ctx, p.PushConsumer.Info)
}

// bucket is a key-value bucket of a bus. The context of a watcher is that of its
// whole life: it counts as before, and only the request that starts it is bounded.
type bucket struct{ jetstream.KeyValue }

func (b bucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	return read(ctx, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return b.KeyValue.Get(ctx, key) })
}

func (b bucket) GetRevision(ctx context.Context, key string, revision uint64) (jetstream.KeyValueEntry, error) {
	return read(ctx, func(ctx context.Context) (jetstream.KeyValueEntry, error) {
		return b.KeyValue.GetRevision(ctx, key, revision)
	})
}

func (b bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.KeyValue.Put(unhurried{ctx}, key, value)
}

func (b bucket) PutString(ctx context.Context, key, value string) (uint64, error) {
	return b.KeyValue.PutString(unhurried{ctx}, key, value)
}

func (b bucket) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	return b.KeyValue.Create(unhurried{ctx}, key, value, opts...)
}

func (b bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.KeyValue.Update(unhurried{ctx}, key, value, revision)
}

func (b bucket) Delete(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	return b.KeyValue.Delete(unhurried{ctx}, key, opts...)
}

func (b bucket) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	return b.KeyValue.Purge(unhurried{ctx}, key, opts...)
}

func (b bucket) Watch(ctx context.Context, keys string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.KeyValue.Watch(unhurried{ctx}, keys, opts...)
}

func (b bucket) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.KeyValue.WatchAll(unhurried{ctx}, opts...)
}

func (b bucket) WatchFiltered(ctx context.Context, keys []string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.KeyValue.WatchFiltered(unhurried{ctx}, keys, opts...)
}

func (b bucket) Keys(ctx context.Context, opts ...jetstream.WatchOpt) ([]string, error) {
	return b.KeyValue.Keys(unhurried{ctx}, opts...)
}

func (b bucket) ListKeys(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyLister, error) {
	return b.KeyValue.ListKeys(unhurried{ctx}, opts...)
}

func (b bucket) ListKeysFiltered(ctx context.Context, filters ...string) (jetstream.KeyLister, error) {
	return b.KeyValue.ListKeysFiltered(unhurried{ctx}, filters...)
}

func (b bucket) History(ctx context.Context, key string, opts ...jetstream.WatchOpt) ([]jetstream.KeyValueEntry, error) {
	return b.KeyValue.History(unhurried{ctx}, key, opts...)
}

func (b bucket) PurgeDeletes(ctx context.Context, opts ...jetstream.KVPurgeOpt) error {
	return b.KeyValue.PurgeDeletes(unhurried{ctx}, opts...)
}

func (b bucket) Status(ctx context.Context) (jetstream.KeyValueStatus, error) {
	return read(ctx, b.KeyValue.Status)
}

// objects is an object store of a bus. Reading content (Get and its kin) is left as
// it is: its context is that of the whole content, which may be large, and the
// library's timeout would cut it; who reads gives it one that fits the size. Writing
// bounds each piece.
type objects struct{ jetstream.ObjectStore }

func (o objects) Put(ctx context.Context, meta jetstream.ObjectMeta, content io.Reader) (*jetstream.ObjectInfo, error) {
	return o.ObjectStore.Put(unhurried{ctx}, meta, content)
}

func (o objects) PutBytes(ctx context.Context, name string, data []byte) (*jetstream.ObjectInfo, error) {
	return o.ObjectStore.PutBytes(unhurried{ctx}, name, data)
}

func (o objects) PutString(ctx context.Context, name, data string) (*jetstream.ObjectInfo, error) {
	return o.ObjectStore.PutString(unhurried{ctx}, name, data)
}

func (o objects) PutFile(ctx context.Context, file string) (*jetstream.ObjectInfo, error) {
	return o.ObjectStore.PutFile(unhurried{ctx}, file)
}

func (o objects) GetInfo(ctx context.Context, name string, opts ...jetstream.GetObjectInfoOpt) (*jetstream.ObjectInfo, error) {
	return read(ctx, func(ctx context.Context) (*jetstream.ObjectInfo, error) {
		return o.ObjectStore.GetInfo(ctx, name, opts...)
	})
}

func (o objects) UpdateMeta(ctx context.Context, name string, meta jetstream.ObjectMeta) error {
	return o.ObjectStore.UpdateMeta(unhurried{ctx}, name, meta)
}

func (o objects) Delete(ctx context.Context, name string) error {
	return o.ObjectStore.Delete(unhurried{ctx}, name)
}

func (o objects) AddLink(ctx context.Context, name string, to *jetstream.ObjectInfo) (*jetstream.ObjectInfo, error) {
	return o.ObjectStore.AddLink(unhurried{ctx}, name, to)
}

// AddBucketLink needs the library's own store to link to.
func (o objects) AddBucketLink(ctx context.Context, name string, to jetstream.ObjectStore) (*jetstream.ObjectInfo, error) {
	if own, ok := to.(objects); ok {
		to = own.ObjectStore
	}
	return o.ObjectStore.AddBucketLink(unhurried{ctx}, name, to)
}

func (o objects) Seal(ctx context.Context) error { return o.ObjectStore.Seal(unhurried{ctx}) }

func (o objects) Watch(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.ObjectWatcher, error) {
	return o.ObjectStore.Watch(unhurried{ctx}, opts...)
}

func (o objects) List(ctx context.Context, opts ...jetstream.ListObjectsOpt) ([]*jetstream.ObjectInfo, error) {
	return o.ObjectStore.List(unhurried{ctx}, opts...)
}

func (o objects) Status(ctx context.Context) (jetstream.ObjectStoreStatus, error) {
	return read(ctx, o.ObjectStore.Status)
}
