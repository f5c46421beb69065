package projection

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/notebook"
)

// Held is a notebook.db that is only read, all of it as it was at one position, also while a gateway writes it.
type Held struct {
	db       *sql.DB
	tx       *sql.Tx
	position uint64
	created  time.Time
}

// ErrNoFile: there is no notebook.db, or it is not one of this version.
var ErrNoFile = errors.New("no notebook.db of this version")

// Hold opens the file at path. The caller closes it. Errors: ErrNoFile, or what SQLite says.
func Hold(ctx context.Context, path string) (_ *Held, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoFile, path)
	}
	db, err := openReaders(ctx, path, 1)
	if err != nil {
		return nil, err
	}
	h := &Held{db: db}
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()
	if h.tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	meta := map[string]string{}
	for _, key := range []string{metaVersion, metaCursor, metaCreated} {
		var value string
		if err := h.tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(&value); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrNoFile, path, err)
		}
		meta[key] = value
	}
	if meta[metaVersion] != strconv.Itoa(foldVersion) {
		return nil, fmt.Errorf("%w: %s is of version %s, this program knows %d", ErrNoFile, path, meta[metaVersion], foldVersion)
	}
	if h.position, err = strconv.ParseUint(meta[metaCursor], 10, 64); err != nil {
		return nil, fmt.Errorf("%w: %s: cursor: %w", ErrNoFile, path, err)
	}
	if h.created, err = time.Parse(time.RFC3339Nano, meta[metaCreated]); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoFile, path, err)
	}
	return h, nil
}

// Close ends the reading.
func (h *Held) Close() error {
	var err error
	if h.tx != nil {
		err = h.tx.Rollback()
	}
	return errors.Join(err, h.db.Close())
}

// Position is the last sequence that is in the file.
func (h *Held) Position() uint64 { return h.position }

// Created is when the stream of the file was created.
func (h *Held) Created() time.Time { return h.created }

// Messages gives the messages of the file in order, with the one header that it keeps. do's error ends it.
func (h *Held) Messages(ctx context.Context, do func(notebook.Message) error) (err error) {
	rows, err := h.tx.QueryContext(ctx, `SELECT seq, coalesce(original, seq), subject, stored, traceparent, body FROM events ORDER BY seq`)
	if err != nil {
		return fmt.Errorf("read notebook.db: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m notebook.Message
		var at string
		var trace sql.NullString
		if err := rows.Scan(&m.Seq, &m.Original, &m.Subject, &at, &trace, &m.Data); err != nil {
			return fmt.Errorf("read notebook.db: %w", err)
		}
		if m.Time, err = time.Parse(storedLayout, at); err != nil {
			return fmt.Errorf("read notebook.db at %d: %w", m.Seq, err)
		}
		if trace.Valid {
			m.Header = nats.Header{"traceparent": {trace.String}}
		}
		if err := do(m); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Texts gives the artifacts whose content is in the file: reports, and claims, that events name by reference. Those that are not what their
// reference says are left out. do's error ends it.
func (h *Held) Texts(ctx context.Context, do func(ref artifact.Ref, content []byte) error) (err error) {
	rows, err := h.tx.QueryContext(ctx, `SELECT ref, sha256, coalesce(size, 0), markdown FROM reports WHERE ref IS NOT NULL AND markdown IS NOT NULL
		UNION ALL SELECT claims_ref, claims_sha256, coalesce(claims_size, 0), claims FROM pages WHERE claims_ref IS NOT NULL AND claims IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("read the texts of notebook.db: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var ref artifact.Ref
		var content []byte
		if err := rows.Scan(&ref.Ref, &ref.SHA256, &ref.Size, &content); err != nil {
			return fmt.Errorf("read the texts of notebook.db: %w", err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != ref.SHA256 {
			continue
		}
		if err := do(ref, bytes.Clone(content)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// maxDifferences of one table are named; all are counted.
const maxDifferences = 20

// Differences compares the rows of every table but events with those of a fresh fold (see Fold) of the same messages. Each is named in words.
// A text that came by reference is compared with the hash of that, since it is fetched later.
func (h *Held) Differences(ctx context.Context, fresh string) (differences []string, err error) {
	other, err := Hold(ctx, fresh)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	tables, err := h.tables(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.name == "events" || t.name == "meta" {
			continue
		}
		found, err := differ(ctx, t, h, other)
		if err != nil {
			return nil, fmt.Errorf("compare the table %s: %w", t.name, err)
		}
		differences = append(differences, found...)
	}
	texts, err := h.badTexts(ctx)
	return append(differences, texts...), err
}

// table is one table with the columns that are compared; those of its key come first.
type table struct {
	name          string
	keys, columns []string
}

// fetched are the columns that are filled later than the rest of their row.
var fetched = map[string]string{"reports": "markdown", "pages": "claims"}

func (h *Held) tables(ctx context.Context) (tables []table, err error) {
	rows, err := h.tx.QueryContext(ctx, `SELECT m.name, c.name, c.pk FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.pk = 0, c.pk, c.cid`)
	if err != nil {
		return nil, fmt.Errorf("list the tables of notebook.db: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name, column string
		var key int
		if err := rows.Scan(&name, &column, &key); err != nil {
			return nil, err
		}
		if len(tables) == 0 || tables[len(tables)-1].name != name {
			tables = append(tables, table{name: name})
		}
		t := &tables[len(tables)-1]
		switch {
		case fetched[name] == column:
		case key > 0:
			t.keys = append(t.keys, column)
		default:
			t.columns = append(t.columns, column)
		}
	}
	return tables, rows.Err()
}

// rowCursor reads a table in the order of its key, row by row.
type rowCursor struct {
	rows    *sql.Rows
	t       table
	key     []any
	columns []any
	done    bool
}

func (h *Held) rowsOf(ctx context.Context, t table) (*rowCursor, error) {
	quoted := make([]string, 0, len(t.keys)+len(t.columns))
	for _, c := range append(append([]string{}, t.keys...), t.columns...) {
		quoted = append(quoted, `"`+c+`"`)
	}
	rows, err := h.tx.QueryContext(ctx, `SELECT `+strings.Join(quoted, ", ")+` FROM `+t.name+` ORDER BY `+strings.Join(quoted[:len(t.keys)], ", "))
	if err != nil {
		return nil, err
	}
	c := &rowCursor{rows: rows, t: t}
	return c, c.next()
}

func (c *rowCursor) next() error {
	if c.done = !c.rows.Next(); c.done {
		return c.rows.Err()
	}
	all := make([]any, len(c.t.keys)+len(c.t.columns))
	into := make([]any, len(all))
	for i := range all {
		into[i] = &all[i]
	}
	err := c.rows.Scan(into...)
	c.key, c.columns = all[:len(c.t.keys)], all[len(c.t.keys):]
	return err
}

// name is the row's key for people.
func (c *rowCursor) name() string {
	parts := make([]string, len(c.key))
	for i, v := range c.key {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, "/")
}

// differ walks both tables in the order of their keys.
func differ(ctx context.Context, t table, held, fresh *Held) (differences []string, err error) {
	a, err := held.rowsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.rows.Close()) }()
	b, err := fresh.rowsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.rows.Close()) }()
	total := 0
	say := func(format string, args ...any) {
		if total++; total <= maxDifferences {
			differences = append(differences, fmt.Sprintf("notebook.db: table "+t.name+": "+format, args...))
		}
	}
	for !a.done || !b.done {
		order := 0
		switch {
		case a.done:
			order = 1
		case b.done:
			order = -1
		default:
			order = compareKeys(a.key, b.key)
		}
		if order < 0 {
			say("row %s should not be there", a.name())
		}
		if order > 0 {
			say("row %s is missing", b.name())
		}
		if order == 0 {
			for i, column := range t.columns {
				if !same(a.columns[i], b.columns[i]) {
					say("row %s: %s is %s, should be %s", a.name(), column, shown(a.columns[i]), shown(b.columns[i]))
				}
			}
		}
		if order <= 0 {
			if err := a.next(); err != nil {
				return nil, err
			}
		}
		if order >= 0 {
			if err := b.next(); err != nil {
				return nil, err
			}
		}
	}
	if total > maxDifferences {
		differences = append(differences, fmt.Sprintf("notebook.db: table %s: %d more", t.name, total-maxDifferences))
	}
	return differences, nil
}

// compareKeys orders keys as SQLite does: numbers by value, texts by bytes, numbers before texts.
func compareKeys(a, b []any) int {
	for i := range a {
		x, xIsNumber := a[i].(int64)
		y, yIsNumber := b[i].(int64)
		order := 0
		switch {
		case xIsNumber && yIsNumber:
			order = int(min(max(x-y, -1), 1))
		case xIsNumber:
			order = -1
		case yIsNumber:
			order = 1
		default:
			order = strings.Compare(textOf(a[i]), textOf(b[i]))
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

func same(a, b any) bool {
	if x, ok := a.([]byte); ok {
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	}
	return a == b
}

func textOf(v any) string {
	if raw, ok := v.([]byte); ok {
		return string(raw)
	}
	return fmt.Sprint(v)
}

// shown is a value for people: short, and in quotes when it is text.
func shown(v any) string {
	const longest = 60
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string, []byte:
		text := textOf(v)
		if len(text) > longest {
			text = strings.ToValidUTF8(text[:longest], "") + "..."
		}
		return strconv.Quote(text)
	default:
		return fmt.Sprint(v)
	}
}

// badTexts names the reports that are not what their references say.
func (h *Held) badTexts(ctx context.Context) (bad []string, err error) {
	rows, err := h.tx.QueryContext(ctx, `SELECT run, sha256, markdown FROM reports WHERE ref IS NOT NULL AND markdown IS NOT NULL ORDER BY run`)
	if err != nil {
		return nil, fmt.Errorf("read the reports of notebook.db: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var run, want string
		var markdown []byte
		if err := rows.Scan(&run, &want, &markdown); err != nil {
			return nil, fmt.Errorf("read the reports of notebook.db: %w", err)
		}
		if sum := sha256.Sum256(markdown); hex.EncodeToString(sum[:]) != want {
			bad = append(bad, fmt.Sprintf("notebook.db: the report of run %s is not the one that its artifact's hash names", run))
		}
	}
	return bad, rows.Err()
}

// Fold makes a notebook.db at path from messages alone, as a gateway would by reading the stream; path must not exist. read calls do with batches of messages
// in order. Texts that come by reference are left out.
func Fold(ctx context.Context, path string, created time.Time, read func(do func([]notebook.Message) error) error) (err error) {
	p := &Projection{prepared: statements{}}
	if p.writer, err = openWriter(ctx, path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.closeFiles()) }()
	if err := p.empty(ctx); err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	n := notebook.NewNotebook()
	if err := p.write(ctx, []*batch{{}}, created); err != nil {
		return err
	}
	return read(func(messages []notebook.Message) error {
		if len(messages) == 0 {
			return nil
		}
		return p.write(ctx, []*batch{collect(n, messages)}, created)
	})
}
