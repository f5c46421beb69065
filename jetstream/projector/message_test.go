package projector_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestOneMessageIsReadByItsSequence(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	first := publish(t, js, 1)
	m, err := projector.Get(t.Context(), js, topology.Notebook, first)
	require.NoError(t, err)
	require.Equal(t, "0", string(m.Data))
	require.Equal(t, first, m.Seq)
	require.Equal(t, first, m.Original)
	_, err = projector.Get(t.Context(), js, topology.Notebook, first+1)
	require.ErrorIs(t, err, projector.ErrNoMessage)
	_, err = projector.Get(t.Context(), js, "NONE", first)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}

// A replica that lags says that there is no such message; what counts is what the leader says.
func TestAReplicaThatLagsIsNotBelieved(t *testing.T) {
	t.Parallel()
	_, nc, js := bustest.Start(t)
	header := nats.Header{}
	topology.SetOriginal(header, 7, time.Now())
	ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: topology.Subject("run", "completed", "t", "r", 0), Header: header, Data: []byte("answer")})
	require.NoError(t, err)
	asked := make(chan string, 10)
	_, err = nc.Subscribe("lagging.>", func(m *nats.Msg) {
		verb := strings.TrimPrefix(m.Subject, "lagging.")
		asked <- verb
		if strings.HasPrefix(verb, "DIRECT.GET.") {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": []string{"404"}, "Description": []string{"Message Not Found"}}})
			return
		}
		_ = nc.PublishRequest(jetstream.DefaultAPIPrefix+verb, m.Reply, m.Data)
	})
	require.NoError(t, err)
	behind, err := jetstream.NewWithAPIPrefix(nc, "lagging")
	require.NoError(t, err)
	newest, err := projector.Newest(t.Context(), behind, topology.Notebook, "run.completed.>")
	require.NoError(t, err)
	require.Equal(t, ack.Sequence, newest)
	require.Equal(t, "STREAM.MSG.GET.NOTEBOOK", <-asked)
	_, err = projector.Newest(t.Context(), behind, topology.Notebook, "run.failed.>")
	require.ErrorIs(t, err, projector.ErrNoMessage)
	require.Equal(t, "STREAM.MSG.GET.NOTEBOOK", <-asked)
	m, err := projector.Get(t.Context(), behind, topology.Notebook, ack.Sequence)
	require.NoError(t, err)
	require.Equal(t, "answer", string(m.Data))
	require.Equal(t, "run.completed.t.r.0", m.Subject)
	require.Equal(t, [2]uint64{ack.Sequence, 7}, [2]uint64{m.Seq, m.Original})
	require.Equal(t, []string{"STREAM.INFO.NOTEBOOK", "DIRECT.GET.NOTEBOOK", "STREAM.MSG.GET.NOTEBOOK"}, []string{<-asked, <-asked, <-asked})
	_, err = projector.Get(t.Context(), behind, topology.Notebook, ack.Sequence+1)
	require.ErrorIs(t, err, projector.ErrNoMessage)
}
