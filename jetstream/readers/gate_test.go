package readers

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// Whatever a reader sends, what is passed on makes no push consumer and touches
// no other name.
func FuzzAdmit(f *testing.F) {
	f.Add("mine", []byte(`{"stream_name":"NOTEBOOK","config":{"durable_name":"mine","ack_policy":"explicit"},"action":"create"}`))
	f.Add("mine", []byte(`{"config":{"name":"mine","DELIVER_SUBJECT":"x"}}`))
	f.Add("mine", []byte(`{"action":"0"}`))
	f.Add("judge", []byte(`{}`))
	f.Add("", []byte(`null`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		out, err := admit(name, data)
		if err != nil {
			require.NotEmpty(t, refusal(err))
			return
		}
		var request server.CreateConsumerRequest
		if json.Unmarshal(out, &request) != nil {
			return // the server's own refusal
		}
		require.Empty(t, request.Config.DeliverSubject)
		require.Empty(t, request.Config.DeliverGroup)
		for _, n := range []string{request.Config.Name, request.Config.Durable} {
			require.True(t, n == "" || n == name)
		}
		require.NotEqual(t, "judge", name)
	})
}
