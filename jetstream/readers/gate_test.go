package readers

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
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
	f.Add("ext-mine", []byte(`{"config":{"durable_name":"ext-mine","inactive_threshold":7200000000000}}`))
	f.Add("mine", []byte(`{"config":{"name":"mine","inactive_threshold":7200000000000}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		out, err := admit(name, data)
		if err != nil {
			var refused *refused
			require.True(t, !errors.As(err, &refused) || json.Valid(refused.answer()))
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
		if !strings.HasPrefix(name, OwnPrefix) {
			require.Empty(t, request.Config.Durable)
			require.LessOrEqual(t, request.Config.InactiveThreshold, MaxPassing)
		}
	})
}

func TestThereIsRoomUpToTheLimits(t *testing.T) {
	t.Parallel()
	names := func(prefix string, n int) (names []string) {
		for i := range n {
			names = append(names, prefix+strconv.Itoa(i))
		}
		return names
	}
	full := names(OwnPrefix, MaxNamed)
	for name, c := range map[string]struct {
		name  string
		names []string
		total int
		want  string
	}{
		"an empty notebook":                      {"ext-mine", nil, 0, ""},
		"the last place for a name":              {"ext-mine", full[1:], MaxNamed - 1, ""},
		"no place for a name":                    {"ext-mine", full, MaxNamed, "there are 100 consumers"},
		"a place for who has one":                {"ext-7", full, MaxNamed, ""},
		"a place for what does not last":         {"x", full, MaxNamed, ""},
		"the last place":                         {"x", names("o", MaxConsumers-1), MaxConsumers - 1, ""},
		"no place":                               {"x", names("o", MaxConsumers), MaxConsumers, "the notebook has 300 consumers"},
		"no place, more than the answer has":     {"x", names("o", 10), MaxConsumers + 1, "the notebook has 301 consumers"},
		"no place, and the name of one that has": {"o3", names("o", MaxConsumers), MaxConsumers, ""},
	} {
		err := fits(c.name, c.names, c.total)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}
