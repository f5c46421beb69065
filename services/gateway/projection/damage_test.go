package projection_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// A file that goes bad under a running projection ends it, so that the next start makes the file again, rather than being written to in vain for ever.
func TestAFileThatGoesBadWhileItIsOpenIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*testing.T, *sql.DB, string)
		aside bool
	}{
		"a table less": {spoil: func(t *testing.T, db *sql.DB, _ string) {
			_, err := db.Exec(`DROP TABLE runs`)
			require.NoError(t, err)
		}},
		"damaged in parts": {aside: true, spoil: func(t *testing.T, db *sql.DB, path string) {
			_, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			require.NoError(t, err)
			damageInPlace(t, path)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servicetest.NewBus(t).Open("gateway")
			servicetest.Run(t, s)
			path := filepath.Join(t.TempDir(), "notebook.db")
			create(t, s, "one")
			p, err := projection.Open(t.Context(), projection.Config{Path: path, JS: s.JS, Artifacts: s.Artifacts, Log: s.Log})
			require.NoError(t, err)
			ended := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
			defer cancel()
			go func() { ended <- p.Run(ctx) }()
			caughtUp(t, s, p, path)

			db, err := sql.Open("sqlite3", "file:"+path)
			require.NoError(t, err)
			c.spoil(t, db, path)
			require.NoError(t, db.Close())
			request(t, s, "one", "r1", "")
			require.ErrorContains(t, <-ended, "made again at the next start")
			require.NoError(t, ctx.Err(), "it ended by itself")
			_ = p.Close() // a damaged file may not close without complaint
			_, err = os.Stat(path + ".damaged")
			require.Equal(t, c.aside, err == nil)

			p, closed := open(t, s, path)
			caughtUp(t, s, p, path)
			closed()
			made := dump(t, path)
			fresh := filepath.Join(t.TempDir(), "notebook.db")
			p, closed = open(t, s, fresh)
			caughtUp(t, s, p, fresh)
			closed()
			same(t, dump(t, fresh), made)
		})
	}
}

// damageInPlace overwrites every page but the first in the file that is open elsewhere.
func damageInPlace(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // the test would notice
	info, err := f.Stat()
	require.NoError(t, err)
	bad := make([]byte, info.Size()-4096)
	for i := range bad {
		bad[i] = 0xa5
	}
	_, err = f.WriteAt(bad, 4096)
	require.NoError(t, err)
}

// After the store was deleted, a power cut took the stream's end, or NATS_URL named a new server, the file may be the only copy that there is.
func TestAFileWithEventsThatTheStreamHasLostIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notebook.db")
	notebook := func() *service.Service {
		s := servicetest.NewBus(t).Open("gateway")
		servicetest.Run(t, s)
		return s
	}
	look := func(s *service.Service) {
		p, closed := open(t, s, path)
		caughtUp(t, s, p, path)
		closed()
	}

	s := notebook()
	create(t, s, "one")
	look(s)
	for _, kept := range []string{path + ".lost", path + ".lost2"} {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		s = notebook()
		look(s)
		have, err := os.ReadFile(kept)
		require.NoError(t, err)
		require.Equal(t, want, have)
		create(t, s, "two")
		look(s)
	}
	look(s)
	require.NoFileExists(t, path+".lost3", "the stream has everything")

	db, err := sql.Open("sqlite3", "file:"+path)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE meta SET value = '99999' WHERE key = 'cursor'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	look(s)
	require.FileExists(t, path+".lost3", "the same stream, which ends before the file")

	other := notebook()
	create(t, other, "three")
	look(other)
	require.NoFileExists(t, path+".lost4", "the file is of another notebook, which has its own stream")
}
