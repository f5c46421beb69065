package api_test

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// Another program may hold notebook.db for seconds (BEGIN IMMEDIATE in a shell of sqlite3): reads and readiness answer meanwhile, and readiness tells as much
// as ever.
func TestAFileThatAnotherProgramHoldsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	g := startWith(t, servicetest.NewBus(t), api.Options{CommandTimeout: servicetest.Wait, ProjectionWait: 100 * time.Millisecond})
	thread := g.create("Why?")
	g.caughtUp()
	dir, err := g.service.Spool("")
	require.NoError(t, err)
	other, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, api.FileName)+"?_txlock=immediate")
	require.NoError(t, err)
	defer other.Close() //nolint:errcheck // the test would notice
	holds, err := other.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	g.append(thread.ID, notebook.Pause{})
	_, err = g.service.JS.Publish(t.Context(), "ext.note."+thread.ID+".0.0", []byte(`{}`))
	require.NoError(t, err)
	for _, path := range []string{"/readyz", "/api/v1/threads/" + thread.ID + "/sources", "/metrics"} {
		began := time.Now()
		a := g.do("GET", path, nil)
		require.Less(t, time.Since(began), 3*time.Second, path)
		a.is(200, nil)
		if path == "/readyz" {
			var ready api.Ready
			require.NoError(t, json.Unmarshal(a.body, &ready))
			require.NotContains(t, ready.Reasons, "dead letters cannot be counted")
			require.NotEmpty(t, ready.Provider.Name)
		}
	}
	require.NoError(t, holds.Rollback())
}
