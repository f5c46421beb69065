package projection

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"github.com/factstream/factstream/jetstream/topology"
)

// foldVersion is the version of schema and fold. A file of another one is made again: raise it with every change of schema.sql, of collect, or of
// what the notebook's Evolve makes of the same events.
const foldVersion = 7

//go:embed schema.sql
var schema string

// Keys of the table meta.
const (
	metaVersion = "fold_version"
	metaCreated = "stream_created"
	metaCursor  = "cursor"
)

// ErrLocked is returned by Open when another process writes the file.
var ErrLocked = errors.New("notebook.db is open in another process")

// errLost says that the file holds events which the stream has no more. The file may then be the only copy of them.
var errLost = errors.New("the stream has lost events")

// cursor is where the file ends, and which stream it belongs to.
type cursor struct {
	seq     uint64
	created time.Time // zero: any stream
}

const (
	// cacheKiB is what the writer may keep of the file: ids are hashes, so that their indexes are written all over.
	cacheKiB = 32 << 10
	// checkpointPages is after how many pages (of 4 KiB) the log is written into the file, which waits for the disk twice. Four times SQLite's own
	// number, for the sake of a rebuild; the log never gets much longer than that.
	checkpointPages = 4000
	// readerStatements is how many statements each connection for reading keeps parsed: all that there are, since parsing one takes longer than most
	// take to find their rows.
	readerStatements = 32
)

func openWriter(ctx context.Context, path string) (*sql.DB, error) {
	private, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read it
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := private.Close(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// NORMAL: after a power cut the last batches may be missing, never half there, and the stream has them.
	db, err := sql.Open("sqlite3", dsn(path, fmt.Sprintf(
		"_txlock=immediate&_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=10000&_cache_size=-%d", cacheKiB)))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // which is never closed and opened again: what is set on it stays
	if _, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA wal_autocheckpoint = %d`, checkpointPages)); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func openReaders(ctx context.Context, path string, n int) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", dsn(path, fmt.Sprintf("mode=ro&_query_only=1&_busy_timeout=10000&_stmt_cache_size=%d", readerStatements)))
	if err != nil {
		return nil, fmt.Errorf("open %s for reading: %w", path, err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s for reading: %w", path, err)
	}
	return db, nil
}

func dsn(path, options string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options}
	return u.String()
}

// lock keeps a second gateway off the same file. The kernel gives it up with the process.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock notebook.db: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is locked; give each gateway a data directory of its own", ErrLocked, path)
		}
		return nil, fmt.Errorf("lock notebook.db: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

func isDamaged(err error) bool {
	var bad sqlite3.Error
	return errors.As(err, &bad) && (bad.Code == sqlite3.ErrNotADB || bad.Code == sqlite3.ErrCorrupt)
}

// isMissing says that a statement names something that is not in the file, which a second try would not find either.
func isMissing(err error) bool {
	var bad sqlite3.Error
	return errors.As(err, &bad) && bad.Code == sqlite3.ErrError && strings.HasPrefix(bad.Error(), "no such ")
}

// putAside renames a file, so that nobody's data is deleted by a program that cannot use it. Its log must be written into it, or be of no use.
func putAside(path, aside string) error {
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("put notebook.db aside: %w", err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("put notebook.db aside: %w", err)
		}
	}
	return nil
}

// free gives a name that no file has: the name, or with 2, 3, … behind it.
func free(name string) (string, error) {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try += strconv.Itoa(n)
		}
		if _, err := os.Lstat(try); errors.Is(err, os.ErrNotExist) {
			return try, nil
		} else if err != nil {
			return "", fmt.Errorf("put notebook.db aside: %w", err)
		}
	}
}

// checkCursor gives the cursor of the file. A file of another version or another stream is emptied first, and the cursor is then at the beginning;
// errLost is returned instead when that could destroy the only copy of an event.
func (p *Projection) checkCursor(ctx context.Context) (cursor, error) {
	at, known, err := p.readCursor(ctx)
	if err != nil {
		return cursor{}, err
	}
	why := "it is empty or of another version"
	if known {
		if why, err = p.otherStream(ctx, at); err != nil {
			return cursor{}, err
		}
		if why == "" {
			return at, nil
		}
	}
	if err := p.lostByStream(ctx, at, known); err != nil {
		return cursor{}, err
	}
	if known {
		p.log.Warn().Str("reason", why).Msg("notebook.db is made again from the stream")
	}
	if err := p.empty(ctx); err != nil {
		return cursor{}, fmt.Errorf("begin notebook.db anew (%s): %w", why, err)
	}
	return cursor{}, nil
}

// readCursor says false when the file has none of this version.
func (p *Projection) readCursor(ctx context.Context) (at cursor, known bool, err error) {
	var tables int
	if err := p.writer.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'meta'`).Scan(&tables); err != nil {
		return cursor{}, false, fmt.Errorf("read notebook.db: %w", err)
	}
	if tables == 0 {
		return cursor{}, false, nil
	}
	meta := map[string]string{}
	rows, err := p.writer.QueryContext(ctx, `SELECT key, value FROM meta`)
	if err != nil {
		return cursor{}, false, fmt.Errorf("read notebook.db: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return cursor{}, false, fmt.Errorf("read notebook.db: %w", err)
		}
		meta[key] = value
	}
	if err := rows.Err(); err != nil {
		return cursor{}, false, fmt.Errorf("read notebook.db: %w", err)
	}
	if meta[metaVersion] != strconv.Itoa(foldVersion) {
		return cursor{}, false, nil
	}
	if same, err := p.hasSchema(ctx); err != nil || !same {
		return cursor{}, false, err
	}
	at.seq, err = strconv.ParseUint(meta[metaCursor], 10, 64)
	if err != nil {
		return cursor{}, false, nil
	}
	at.created, err = time.Parse(time.RFC3339Nano, meta[metaCreated])
	return at, err == nil, nil
}

// hasSchema says whether everything of this version's schema is in the file as it was made. What else somebody put there does not matter; a table or
// an index that somebody dropped or changed does: every write would fail, and the file has nothing that the stream has not.
func (p *Projection) hasSchema(ctx context.Context) (bool, error) {
	fresh, err := sql.Open("sqlite3", "file::memory:")
	if err != nil {
		return false, fmt.Errorf("open a database in memory: %w", err)
	}
	defer fresh.Close()      //nolint:errcheck // nothing is kept
	fresh.SetMaxOpenConns(1) // each connection has a memory of its own
	if _, err := fresh.ExecContext(ctx, schema); err != nil {
		return false, fmt.Errorf("make the tables in memory: %w", err)
	}
	want, err := definitions(ctx, fresh)
	if err != nil {
		return false, err
	}
	have, err := definitions(ctx, p.writer)
	if err != nil {
		return false, fmt.Errorf("read notebook.db: %w", err)
	}
	for name, definition := range want {
		if have[name] != definition {
			return false, nil
		}
	}
	return true, nil
}

// definitions gives what made each table, index and view of a database.
func definitions(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	found := map[string]string{}
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			return nil, err
		}
		found[name] = definition
	}
	return found, rows.Err()
}

// otherStream says why the stream is not the one that the cursor belongs to; empty when it is. The creation time alone would not do: a stream
// restored from a backup may have been given the old one, and an end before the cursor would bring no event and no error for ever.
func (p *Projection) otherStream(ctx context.Context, at cursor) (why string, err error) {
	stream, err := p.js.Stream(ctx, topology.Notebook)
	if err != nil {
		return "", fmt.Errorf("look up stream %s: %w", topology.Notebook, err)
	}
	info := stream.CachedInfo()
	switch {
	case !info.Created.Equal(at.created):
		return fmt.Sprintf("the stream was created %s, that of the file %s", info.Created.Format(time.RFC3339), at.created.Format(time.RFC3339)), nil
	case at.seq < topology.Begins(info.Config.Metadata):
		return fmt.Sprintf("the notebook was restored since and begins at %d, the file ends at %d", topology.Begins(info.Config.Metadata), at.seq), nil
	case info.State.LastSeq < at.seq:
		return fmt.Sprintf("the stream ends at %d, the file at %d", info.State.LastSeq, at.seq), nil
	}
	var subject string
	var body []byte
	err = p.writer.QueryRowContext(ctx, `SELECT subject, body FROM events WHERE seq = ?`, at.seq).Scan(&subject, &body)
	if errors.Is(err, sql.ErrNoRows) { // nothing was applied yet
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read notebook.db: %w", err)
	}
	message, err := stream.GetMsg(ctx, at.seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // its thread was deleted and purged since
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read stream %s at %d: %w", topology.Notebook, at.seq, err)
	}
	if message.Subject != subject || !bytes.Equal(message.Data, body) {
		return fmt.Sprintf("the stream has another event at %d than the file", at.seq), nil
	}
	return "", nil
}

// lostByStream returns errLost when the file has events and the stream has none, or is the same one and ends before the file: its store was deleted,
// a power cut took its end, or NATS_URL names a new server. Deletions leave thread.deleted, so they do not look like that; neither does a restored
// notebook, or another one.
func (p *Projection) lostByStream(ctx context.Context, at cursor, known bool) error {
	stream, err := p.js.Stream(ctx, topology.Notebook)
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", topology.Notebook, err)
	}
	info := stream.CachedInfo()
	shorter := known && info.Created.Equal(at.created) && info.State.LastSeq < at.seq && at.seq >= topology.Begins(info.Config.Metadata)
	if info.State.Msgs > 0 && !shorter {
		return nil
	}
	var events int
	if err := p.writer.QueryRowContext(ctx, `SELECT count(*) FROM events`).Scan(&events); err != nil {
		if isMissing(err) {
			return nil
		}
		return fmt.Errorf("read notebook.db: %w", err)
	}
	if events == 0 {
		return nil
	}
	// The file has to be whole by itself, also when somebody else has it open for reading.
	var busy, pages, written int
	if err := p.writer.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &written); err != nil {
		return fmt.Errorf("write the log of notebook.db into it: %w", err)
	}
	if busy != 0 {
		return fmt.Errorf("notebook.db has events that the stream has lost, and cannot be put aside while another program reads it: %s", p.path)
	}
	if shorter {
		return fmt.Errorf("%w: it ends at %d, the file at %d", errLost, info.State.LastSeq, at.seq)
	}
	return fmt.Errorf("%w: it is empty, the file has %d", errLost, events)
}

// empty drops whatever is in the file and makes the tables of this version, in one transaction.
func (p *Projection) empty(ctx context.Context) error {
	tx, err := p.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit
	rows, err := tx.QueryContext(ctx, `SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY type DESC`)
	if err != nil {
		return err
	}
	var drops []string
	for rows.Next() {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			_ = rows.Close()
			return err
		}
		drops = append(drops, fmt.Sprintf(`DROP %s IF EXISTS %q`, kind, name))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, statement := range append(drops, schema) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}
