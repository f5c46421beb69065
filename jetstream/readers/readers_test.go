package readers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/jetstream/topology"
)

// ground is a server, or several, with the accounts, the topology and one gate.
type ground struct {
	services, readers []string // URLs with user and password; with several servers, one each
	js                jetstream.JetStream
	nc                *nats.Conn
}

// grounds are where everything runs: the server in the process, and one with the configuration that docs/consumers.md gives. With the build tag
// threeservers (make test-servers) three of these in a cluster are one more.
var grounds = map[string]func(t *testing.T) ground{"embedded": embedded, "external": single}

func TestReaders(t *testing.T) {
	t.Parallel()
	for name, start := range grounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			for name, test := range map[string]func(t *testing.T, g ground){
				"a reader reads the notebook":                  reads,
				"its own consumer goes on where it was":        resumes,
				"it cannot touch workers nor write":            cannotTouch,
				"the gate refuses what the server cannot tell": gateRefuses,
				"answers cannot be sent elsewhere":             answersStay,
				"several gates answer once":                    severalGates,
				"there is an end to how many there may be":     bounded,
			} {
				t.Run(name, func(t *testing.T) { // one after the other: each compares before and after
					t.Cleanup(func() { _ = g.js.DeleteConsumer(context.Background(), topology.Notebook, "ext-mine") })
					test(t, g)
				})
			}
		})
	}
}

func embedded(t *testing.T) ground {
	srv, nc, js := bustest.Start(t)
	gate(t, nc)
	return ground{nc: nc, js: js, services: []string{srv.URL()}, readers: []string{withUser(t, srv.URL(), srv.ReaderCredentialsFile())}}
}

func withUser(t *testing.T, url, file string) string {
	user, password, err := connect.ReadCredentials(file)
	require.NoError(t, err)
	return strings.Replace(url, "://", "://"+user+":"+password+"@", 1)
}

func single(t *testing.T) ground {
	url := bustest.Configured(t, configuration(t, "127.0.0.1:-1", t.TempDir()))
	as := func(user, password string) []string {
		return []string{strings.Replace(url, "://", "://"+user+":"+password+"@", 1)}
	}
	return ground{
		services: as(readers.ServiceUser, bustest.ServicePassword), readers: as(readers.ReaderUser, bustest.ReaderPassword),
	}.open(t)
}

// configuration is that of the document, for a server of this test.
func configuration(t *testing.T, listen, store string) string {
	return strings.NewReplacer("$FACTSTREAM_PASSWORD", bustest.ServicePassword, "$READER_PASSWORD", bustest.ReaderPassword,
		"/var/lib/nats", store, "0.0.0.0:4222", listen, "sync_interval: always", `sync_interval: "2m"`).Replace(documented(t))
}

// documented is the configuration in docs/consumers.md.
func documented(t *testing.T) string {
	page, err := os.ReadFile("../../docs/consumers.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```conf\n")
	require.True(t, found)
	conf, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	return conf
}

// open declares the topology with as many replicas as there are servers, and opens the gate.
func (g ground) open(t *testing.T) ground {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	g.nc, g.js, err = connect.Dial(ctx, connect.Config{URL: g.services[0], Name: t.Name(), Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(g.nc.Close)
	opts := bustest.Options()
	opts.Replicas = len(g.services)
	require.NoError(t, topology.Declare(ctx, g.js, opts))
	gate(t, g.nc)
	return g
}

func gate(t *testing.T, nc *nats.Conn) {
	gate, err := readers.Open(nc, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
}

// reader connects as the read-only user, to the last server, and collects what the server refuses.
func (g ground) reader(t *testing.T) (*nats.Conn, jetstream.JetStream, <-chan error) {
	t.Helper()
	refused := make(chan error, 100)
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{
		URL: g.readers[len(g.readers)-1], Name: "reader", ReadOnly: true,
		Options: []nats.Option{nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })},
	})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, js, refused
}

func (g ground) publish(t *testing.T, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		_, err := g.js.Publish(t.Context(), subject, []byte("{}"))
		require.NoError(t, err)
	}
	g.counted(t)
}

// counted waits until the worker's consumer counts every message of the stream that is for it: the server tells consumers after it has answered
// the publisher.
func (g ground) counted(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		stream, err := g.js.Stream(t.Context(), topology.Notebook)
		if err != nil {
			return false
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			return false
		}
		worker, err := g.js.Consumer(t.Context(), topology.Notebook, topology.RunsTabstack)
		if err != nil {
			return false
		}
		var its uint64
		for subject, messages := range info.State.Subjects {
			if strings.HasPrefix(subject, "run.requested.") || strings.HasPrefix(subject, "stage.retried.") {
				its += messages
			}
		}
		return worker.CachedInfo().NumPending+worker.CachedInfo().Delivered.Consumer >= its
	}, bustest.Patience, 5*time.Millisecond)
}

// The configuration for other people's servers is the one that the server in the process has.
func TestTheDocumentHasTheAccountsOfTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	require.Contains(t, documented(t), readers.Accounts(readers.Values{JetStream: "enabled", ServicePassword: "$FACTSTREAM_PASSWORD", ReaderPassword: "$READER_PASSWORD"}))
}

func reads(t *testing.T, g ground) {
	first, other := topology.Subject("run", "requested", "reads-t", "r", 0), topology.Subject("run", "requested", "reads-u", "r", 0)
	_, js, _ := g.reader(t)
	last := func() uint64 {
		stream, err := js.Stream(t.Context(), topology.Notebook)
		require.NoError(t, err)
		return stream.CachedInfo().State.LastSeq
	}
	base := last()
	g.publish(t, first, other, topology.Subject("run", "completed", "reads-t", "r", 0))
	require.Equal(t, base+3, last())
	g.publish(t, topology.Subject("ext", "note", "reads-v", "x", 0)) // an event that the notebook does not know, by who may publish

	read := func(cfg jetstream.OrderedConsumerConfig, want ...uint64) {
		t.Helper()
		ordered, err := js.OrderedConsumer(t.Context(), topology.Notebook, cfg)
		require.NoError(t, err)
		it, err := ordered.Messages()
		require.NoError(t, err)
		defer it.Stop()
		for _, sequence := range want {
			msg, err := it.Next(jetstream.NextMaxWait(bustest.Patience))
			require.NoError(t, err)
			meta, err := msg.Metadata()
			require.NoError(t, err)
			require.Equal(t, base+sequence, meta.Sequence.Stream)
		}
	}
	thread := func(id string) []string { return []string{topology.ThreadFilter(id)} }
	// A consumer begins at the last message that its own replica has: it is asked for until that is the last of all.
	require.Eventually(t, func() bool {
		ordered, err := js.OrderedConsumer(t.Context(), topology.Notebook, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPolicy})
		require.NoError(t, err)
		msg, err := ordered.Next()
		if err != nil {
			return false
		}
		meta, err := msg.Metadata()
		require.NoError(t, err)
		return meta.Sequence.Stream == base+4
	}, bustest.Patience, 10*time.Millisecond)
	read(jetstream.OrderedConsumerConfig{FilterSubjects: []string{"ext.>"}}, 4)
	read(jetstream.OrderedConsumerConfig{FilterSubjects: thread("reads-t")}, 1, 3)
	read(jetstream.OrderedConsumerConfig{FilterSubjects: []string{"run.completed.reads-t.>", "*.*.reads-u.>"}}, 2, 3)
	read(jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: base + 2}, 2, 3)
	before := time.Now().Add(-time.Hour)
	read(jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &before, FilterSubjects: thread("reads-t")}, 1, 3)
	read(jetstream.OrderedConsumerConfig{FilterSubjects: thread("reads-u")}, 2)
}

func resumes(t *testing.T, g ground) {
	subject := topology.Subject("run", "requested", "resumes", "r", 0)
	g.publish(t, subject, subject)
	next := func() uint64 {
		nc, js, _ := g.reader(t)
		defer nc.Close()
		own, err := js.CreateOrUpdateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{
			Durable: "ext-mine", AckPolicy: jetstream.AckExplicitPolicy, InactiveThreshold: time.Hour, FilterSubject: topology.ThreadFilter("resumes")})
		require.NoError(t, err)
		msg, err := own.Next(jetstream.FetchMaxWait(bustest.Patience))
		require.NoError(t, err)
		require.NoError(t, msg.DoubleAck(t.Context()))
		meta, err := msg.Metadata()
		require.NoError(t, err)
		return meta.Sequence.Stream
	}
	first := next()
	require.Equal(t, first+1, next())
	_, js, _ := g.reader(t)
	require.NoError(t, js.DeleteConsumer(t.Context(), topology.Notebook, "ext-mine"))
	_, err := js.Consumer(t.Context(), topology.Notebook, "ext-mine")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound)
}

// Each case is a message that the server does not take from a reader at all.
func cannotTouch(t *testing.T, g ground) {
	subject := topology.Subject("run", "requested", "t", "r", 0)
	g.publish(t, subject)
	before := g.state(t)
	nc, _, refused := g.reader(t)

	body := func(v any) []byte {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b
	}
	refilter := func(more func(*jetstream.ConsumerConfig)) []byte {
		cfg := jetstream.ConsumerConfig{Durable: topology.RunsTabstack, Name: topology.RunsTabstack, AckPolicy: jetstream.AckExplicitPolicy}
		more(&cfg)
		return body(map[string]any{"stream_name": topology.Notebook, "config": cfg})
	}
	one := refilter(func(c *jetstream.ConsumerConfig) { c.FilterSubject = "run.failed.>" })
	many := refilter(func(c *jetstream.ConsumerConfig) { c.FilterSubjects = []string{"run.failed.>", "brief.>"} })
	const api, stream = "$JS.API.CONSUMER.", "$JS.API.STREAM."
	attacks := map[string]struct {
		subject string
		data    []byte
	}{
		"re-filter in the long form":    {api + "CREATE.NOTEBOOK.runs-tabstack.run.failed.>", one},
		"re-filter by many":             {api + "CREATE.NOTEBOOK.runs-tabstack", many},
		"re-filter in the old form":     {api + "DURABLE.CREATE.NOTEBOOK.runs-tabstack", one},
		"re-filter without a name":      {api + "CREATE.NOTEBOOK", one},
		"publish":                       {subject, []byte("{}")},
		"publish an event of one's own": {"ext.note.t.x.0", []byte("{}")},
		"to the gate by its own name":   {"factstream.gate.CONSUMER.CREATE.NOTEBOOK.judge", one},
		"purge":                         {stream + "PURGE.NOTEBOOK", nil},
		"delete the stream":             {stream + "DELETE.NOTEBOOK", nil},
		"update the stream":             {stream + "UPDATE.NOTEBOOK", body(map[string]any{"name": "NOTEBOOK", "max_msgs": 1})},
		"delete a message":              {stream + "MSG.DELETE.NOTEBOOK", []byte(`{"seq":1}`)},
		"get a message":                 {stream + "MSG.GET.NOTEBOOK", []byte(`{"seq":1}`)},
		"snapshot":                      {stream + "SNAPSHOT.NOTEBOOK", []byte(`{"deliver_subject":"orders.x"}`)},
		"move the leader":               {stream + "LEADER.STEPDOWN.NOTEBOOK", nil},
		"make a stream":                 {stream + "CREATE.MINE", []byte(`{"name":"MINE","subjects":["mine"]}`)},
		"list streams":                  {stream + "NAMES", nil},
		"describe settings":             {stream + "INFO.KV_settings", nil},
		"read settings":                 {"$JS.API.DIRECT.GET.KV_settings.$KV.settings.key", nil},
		"read settings by a message":    {stream + "MSG.GET.KV_settings", []byte(`{"last_by_subj":"$KV.settings.key"}`)},
		"read settings by a consumer":   {api + "CREATE.KV_settings.mine", []byte(`{"stream_name":"KV_settings","config":{"name":"mine","ack_policy":"none"}}`)},
		"write settings":                {"$KV.settings.key", []byte("x")},
		"read leases":                   {"$JS.API.DIRECT.GET.KV_leases.$KV.leases.provider.tabstack", nil},
		"take a lease":                  {"$KV.leases.provider.tabstack", []byte("mine")},
		"read replies":                  {"$JS.API.DIRECT.GET.KV_replies", []byte(`{"seq":1}`)},
		"read an artifact":              {"$JS.API.DIRECT.GET.OBJ_artifacts", []byte(`{"seq":1}`)},
		"read the trail":                {api + "CREATE.TRAIL.mine", []byte(`{"stream_name":"TRAIL","config":{"name":"mine","ack_policy":"none"}}`)},
		"read dead letters":             {"$JS.API.DIRECT.GET.DEAD", []byte(`{"seq":1}`)},
		"ask for the account":           {"$JS.API.INFO", nil},
	}
	for _, d := range topology.Durables() {
		for verb, data := range map[string][]byte{
			"CREATE": one, "DELETE": nil, "INFO": nil, "MSG.NEXT": []byte("1"), "PAUSE": body(map[string]any{"pause_until": time.Now().Add(time.Hour)}),
			"RESET": []byte(`{"seq":1}`), "UNPIN": []byte(`{"group":"g"}`), "LEADER.STEPDOWN": nil,
		} {
			attacks[verb+" "+d.Name] = struct {
				subject string
				data    []byte
			}{api + verb + ".NOTEBOOK." + d.Name, data}
		}
		for _, word := range []string{"+ACK", "-NAK", "+TERM", "+WPI", "+NXT"} {
			attacks[word+" "+d.Name] = struct {
				subject string
				data    []byte
			}{"$JS.ACK.NOTEBOOK." + d.Name + ".1.1.1.1.0", []byte(word)}
		}
	}
	for name, attack := range attacks {
		// Nobody answers what is refused; the refusal itself comes to the handler.
		require.NoError(t, nc.PublishRequest(attack.subject, connect.ReaderInbox+".answer", attack.data), name)
		require.NoError(t, nc.Flush())
		select {
		case err := <-refused:
			require.ErrorIs(t, err, nats.ErrPermissionViolation, name)
		case <-time.After(bustest.Patience):
			t.Fatalf("%s was not refused", name)
		}
	}
	for _, subject := range []string{"_INBOX.>", ">", "run.>", "$JS.API.>", "$KV.>", "factstream.gate.>"} {
		_, err := nc.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	g.unchanged(t, before)
}

// What names a worker in the request's body, or asks for a push, gets as far as the gate.
func gateRefuses(t *testing.T, g ground) {
	g.publish(t, topology.Subject("run", "requested", "t", "r", 0))
	before := g.state(t)
	heard, err := g.nc.SubscribeSync("orders.>")
	require.NoError(t, err)
	require.NoError(t, g.nc.Flush())
	nc, js, _ := g.reader(t)
	for _, subject := range []string{"$JS.API.CONSUMER.CREATE.NOTEBOOK.mine", "$JS.API.CONSUMER.CREATE.NOTEBOOK.mine.run.>"} {
		for _, body := range []string{
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","deliver_subject":"orders.pushed","filter_subject":"run.>","ack_policy":"none"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","Deliver_Subject":"orders.pushed","filter_subject":"run.>","ack_policy":"none"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","deliver_subject":"","deliver_subject":"orders.pushed","ack_policy":"none"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","deliver_group":"g","ack_policy":"none"}}`,
			`{"stream_name":"NOTEBOOK","config":{"durable_name":"runs-tabstack","ack_policy":"explicit","filter_subject":"run.>"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"runs-tabstack","ack_policy":"explicit","filter_subject":"run.>"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","durable_name":"runs-tabstack","ack_policy":"explicit","filter_subjects":["run.>","brief.>"]}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"other","ack_policy":"none"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","durable_name":"mine","ack_policy":"explicit"}}`,
			`{"stream_name":"NOTEBOOK","config":{"name":"mine","inactive_threshold":3600000000001,"ack_policy":"explicit"}}`,
			`not JSON`,
		} {
			answer, err := nc.Request(subject, []byte(body), bustest.Patience)
			require.NoError(t, err)
			require.Contains(t, string(answer.Data), `"code":403`, body)
		}
	}
	_, err = js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "index"})
	require.ErrorContains(t, err, "must begin with ext-", "as a program of the reader's sees it")
	// The stream in the body is not the one in the subject: the server's own refusal.
	answer, err := nc.Request("$JS.API.CONSUMER.CREATE.NOTEBOOK.mine", []byte(`{"stream_name":"KV_settings","config":{"name":"mine","ack_policy":"none"}}`), bustest.Patience)
	require.NoError(t, err)
	require.Contains(t, string(answer.Data), `"error"`)
	_, err = js.Consumer(t.Context(), topology.Notebook, "mine")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound)
	require.NoError(t, g.nc.Publish("orders.end", nil))
	first, err := heard.NextMsg(bustest.Patience)
	require.NoError(t, err)
	require.Equal(t, "orders.end", first.Subject)
	g.unchanged(t, before)
}

// A reply subject is where the server itself sends a message. It must not lead to where the reader may not send one: neither to what
// others listen to, nor to what JetStream obeys.
func answersStay(t *testing.T, g ground) {
	g.publish(t, topology.Subject("run", "requested", "t", "r", 0))
	worker, err := g.js.Consumer(t.Context(), topology.Notebook, topology.RunsTabstack)
	require.NoError(t, err)
	held, err := worker.Next(jetstream.FetchMaxWait(bustest.Patience)) // a message in a worker's hand, to be acknowledged for it
	require.NoError(t, err)
	before := g.state(t)
	heard, err := g.nc.SubscribeSync("orders.>")
	require.NoError(t, err)
	require.NoError(t, g.nc.Flush())

	nc, js, _ := g.reader(t)
	own, err := js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-mine", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute})
	require.NoError(t, err)
	mine, err := own.Next(jetstream.FetchMaxWait(bustest.Patience))
	require.NoError(t, err)
	acknowledge := mine.Reply()
	for _, reply := range []string{
		"orders.pulled", topology.Subject("run", "requested", "t", "r", 1), "$KV.settings.key", "$KV.leases.provider.tabstack",
		"$JS.API.CONSUMER.DELETE.NOTEBOOK.runs-tabstack", "$JS.API.CONSUMER.MSG.NEXT.NOTEBOOK.runs-tabstack",
		"$JS.API.CONSUMER.PAUSE.NOTEBOOK.runs-tabstack", "$JS.API.STREAM.PURGE.NOTEBOOK", "$JS.API.CONSUMER.CREATE.NOTEBOOK.runs-tabstack",
		"factstream.gate.CONSUMER.CREATE.NOTEBOOK.judge", held.Reply(),
	} {
		g.publish(t, topology.Subject("run", "requested", "t", "r", 2)) // something to pull
		for subject, data := range map[string]string{
			"$JS.API.CONSUMER.MSG.NEXT.NOTEBOOK.ext-mine": "1",
			"$JS.API.CONSUMER.INFO.NOTEBOOK.ext-mine":     "",
			"$JS.API.STREAM.INFO.NOTEBOOK":                "",
			"$JS.API.CONSUMER.CREATE.NOTEBOOK.ext-mine":   `{"stream_name":"NOTEBOOK","config":{"durable_name":"ext-mine","ack_policy":"explicit","ack_wait":60000000000}}`,
			"$JS.API.CONSUMER.CREATE.NOTEBOOK.bad":        `{"stream_name":"NOTEBOOK","config":{"name":"bad","deliver_subject":"x"}}`,
			"$JS.API.CONSUMER.DELETE.NOTEBOOK.none":       "",
			acknowledge:                                   "+NXT",
		} {
			require.NoError(t, nc.PublishRequest(subject, reply, []byte(data)))
			if err := nc.FlushTimeout(bustest.Patience); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
				require.NoError(t, err)
			}
		}
	}
	// What a reader asked for has been answered before this is.
	_, js, _ = g.reader(t)
	_, err = js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		own, err = js.Consumer(t.Context(), topology.Notebook, "ext-mine")
		return err == nil && own.CachedInfo().Delivered.Consumer >= 11
	}, bustest.Patience, 10*time.Millisecond, "the pulls are answered, somewhere")
	require.NoError(t, g.nc.Publish("orders.end", nil))
	first, err := heard.NextMsg(bustest.Patience)
	require.NoError(t, err)
	require.Equal(t, "orders.end", first.Subject)
	before.events += 11
	before.pending += 11
	g.unchanged(t, before)
	for _, bucket := range []string{topology.BucketSettings, topology.BucketLeases} {
		keys, err := bustest.Bucket(t, g.js, bucket).Keys(t.Context())
		require.ErrorIs(t, err, jetstream.ErrNoKeysFound, keys)
	}
}

// state is what no reader may change.
type state struct {
	events, pending uint64
	filters         []string
	unacknowledged  int
	delivered       uint64
	paused          bool
}

func (g ground) state(t *testing.T) state {
	t.Helper()
	stream, err := g.js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	for _, d := range topology.Durables() {
		_, err := g.js.Consumer(t.Context(), topology.Notebook, d.Name)
		require.NoError(t, err)
	}
	worker, err := g.js.Consumer(t.Context(), topology.Notebook, topology.RunsTabstack)
	require.NoError(t, err)
	info := worker.CachedInfo()
	return state{
		events: stream.CachedInfo().State.Msgs, pending: info.NumPending, filters: info.Config.FilterSubjects,
		unacknowledged: info.NumAckPending, delivered: info.Delivered.Consumer, paused: info.Paused,
	}
}

func (g ground) unchanged(t *testing.T, before state) {
	t.Helper()
	require.Equal(t, before, g.state(t))
}

// Whoever has a consumer keeps it when there is no place for another.
func bounded(t *testing.T, g ground) {
	_, js, _ := g.reader(t)
	own := jetstream.ConsumerConfig{Durable: "ext-mine", AckPolicy: jetstream.AckExplicitPolicy}
	_, err := js.CreateOrUpdateConsumer(t.Context(), topology.Notebook, own)
	require.NoError(t, err)
	for i := range readers.MaxNamed - 1 {
		name := fmt.Sprint("ext-", i)
		_, err := g.js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: name, MemoryStorage: true, Replicas: 1})
		require.NoError(t, err)
		t.Cleanup(func() { _ = g.js.DeleteConsumer(context.Background(), topology.Notebook, name) })
	}
	_, err = js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-one-more"})
	require.ErrorContains(t, err, "there are 100 consumers whose names begin with ext-, and 100 is the limit")
	_, err = js.CreateOrUpdateConsumer(t.Context(), topology.Notebook, own)
	require.NoError(t, err)
	_, err = js.OrderedConsumer(t.Context(), topology.Notebook, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err, "what does not last takes no name")
	require.NoError(t, js.DeleteConsumer(t.Context(), topology.Notebook, "ext-0"))
	_, err = js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-0"})
	require.NoError(t, err, "one that was deleted makes room")
}

// Two gateways share the requests: each is answered once, and one is enough.
func severalGates(t *testing.T, g ground) {
	second, err := readers.Open(g.nc, zerolog.Nop())
	require.NoError(t, err)
	nc, js, _ := g.reader(t)
	answers, err := nc.SubscribeSync(connect.ReaderInbox + ".answers")
	require.NoError(t, err)
	for i := range 20 {
		name := fmt.Sprint("mine", i)
		require.NoError(t, nc.PublishRequest("$JS.API.CONSUMER.CREATE.NOTEBOOK."+name, connect.ReaderInbox+".answers",
			[]byte(`{"stream_name":"NOTEBOOK","config":{"name":"`+name+`","ack_policy":"none"}}`)))
	}
	for range 20 {
		_, err := answers.NextMsg(bustest.Patience)
		require.NoError(t, err)
	}
	second.Close()
	_, err = js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Name: "last"})
	require.NoError(t, err)
	count, _, err := answers.Pending()
	require.NoError(t, err)
	require.Zero(t, count)
}

// Without a gate nobody makes a consumer, and the reader is not told that there is no JetStream.
func TestWithoutAGate(t *testing.T) {
	t.Parallel()
	srv, nc, _ := bustest.Start(t)
	gate, err := readers.Open(nc, zerolog.Nop())
	require.NoError(t, err)
	g := ground{readers: []string{withUser(t, srv.URL(), srv.ReaderCredentialsFile())}}
	_, js, _ := g.reader(t)
	own, err := js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-mine"})
	require.NoError(t, err)
	gate.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = own.Info(t.Context())
	require.NoError(t, err, "what is there goes on")
	_, err = js.CreateConsumer(ctx, topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-other"})
	require.Error(t, err)

	serving := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { serving <- readers.Serve(ctx, nc, zerolog.Nop()) }()
	require.Eventually(t, func() bool {
		_, err := js.CreateConsumer(t.Context(), topology.Notebook, jetstream.ConsumerConfig{Durable: "ext-other"})
		return err == nil
	}, bustest.Patience, 10*time.Millisecond)
	stop()
	require.NoError(t, <-serving)
}
