package embedded

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestOnlyWhatAPersonCanDoSomethingAboutIsAWarning(t *testing.T) {
	t.Parallel()
	for line, level := range map[string]string{
		"Filestore [NOTEBOOK] Stream state outdated, last block has additional entries, will rebuild":                    "info",
		"Filestore [KV_leases] Stream state detected prior state, could not locate msg block 1":                          "info",
		"Filestore [KV_leases] Recovering stream state from index errored: prior state file":                             "info",
		"Filestore [KV_leases] Recovering stream state from index errored: corrupt state file":                           "warn",
		"Metalayer blocking snapshot took 0.003s (streams: 9, consumers: 28, compacted: 14.83 KB)":                       "info",
		"Catchup for stream 'FACTSTREAM > NOTEBOOK' stalled":                                                             "info",
		"JetStream cluster stream 'FACTSTREAM > NOTEBOOK' has NO quorum, stalled":                                        "info",
		"Failed to install snapshot for 'FACTSTREAM > KV_settings' [S-R3F]: write snap.1.1.tmp: no space left on device": "warn",
		"JetStream has not established contact with a meta leader":                                                       "debug",
	} {
		var said bytes.Buffer
		newServerLog(zerolog.New(&said)).Warnf("%s", line)
		require.Contains(t, said.String(), `"level":"`+level+`"`, line)
	}
	var said bytes.Buffer
	newServerLog(zerolog.New(&said)).Errorf("Catchup for stream '%s' cannot go on", "NOTEBOOK")
	require.Contains(t, said.String(), `"level":"error"`, "an error stays one")
}
