package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// RawEvent is a message of the stream as it came.
type RawEvent struct {
	Seq    uint64
	Type   string
	Thread string
	Body   []byte // must not be changed: others read the same
}

// Events lists up to limit messages with sequences above after, in order; of one thread, or of all when thread is empty. Those that are no event of
// the notebook are left out; those of a type that this version does not know are not, since who reads them may. When there are fewer than limit, all is
// listed that there is up to the sequence upTo: who watches goes on behind that, and not behind the last event of a quiet thread, so as to
// find what comes next in memory.
func (p *Projection) Events(ctx context.Context, thread string, after uint64, limit int) (events []RawEvent, upTo uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, fmt.Errorf("read events after %d: %w", after, err)
	}
	if events, upTo, here := p.newest.after(thread, after, limit); here {
		return events, upTo, nil
	}
	return p.eventsInFile(ctx, thread, after, limit)
}

func (p *Projection) eventsInFile(ctx context.Context, thread string, after uint64, limit int) (events []RawEvent, upTo uint64, err error) {
	db := p.file(ctx)
	upTo = p.Position()
	query, args := `SELECT seq, type, thread, body FROM events WHERE seq > ? AND (problem IS NULL OR unknown)`, []any{after}
	if thread != "" { // a condition of its own, for the index by thread
		query, args = query+` AND thread = ?`, append(args, thread)
	}
	rows, err := db.QueryContext(ctx, query+` ORDER BY seq LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, 0, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e RawEvent
		if err := rows.Scan(&e.Seq, &e.Type, &e.Thread, &e.Body); err != nil {
			return nil, 0, fmt.Errorf("read events after %d: %w", after, err)
		}
		events = append(events, e)
	}
	return events, upTo, rows.Err()
}

// BadEvents lists the first events that could not be applied, oldest first, and how many there are in all; those whose sequences are passed do not count.
func (p *Projection) BadEvents(ctx context.Context, passed []uint64, limit int) (bad []notebook.BadEvent, total int, err error) {
	if passed == nil {
		passed = []uint64{}
	}
	list, err := json.Marshal(passed)
	if err != nil {
		return nil, 0, fmt.Errorf("list bad events: %w", err)
	}
	const from = ` FROM events WHERE problem IS NOT NULL AND seq NOT IN (SELECT value FROM json_each(?))`
	if err := p.file(ctx).QueryRowContext(ctx, `SELECT count(*)`+from, string(list)).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count bad events: %w", err)
	}
	if total == 0 {
		return nil, 0, nil
	}
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT seq, subject, problem, stored`+from+` ORDER BY seq LIMIT ?`, string(list), limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list bad events: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b notebook.BadEvent
		var at string
		if err := rows.Scan(&b.Seq, &b.Subject, &b.Error, &at); err != nil {
			return nil, 0, fmt.Errorf("list bad events: %w", err)
		}
		b.At, _ = time.Parse(storedLayout, at)
		bad = append(bad, b)
	}
	return bad, total, rows.Err()
}

// IsBad says whether the event of a sequence is here and could not be applied.
func (p *Projection) IsBad(ctx context.Context, seq uint64) (bad bool, err error) {
	err = p.file(ctx).QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM events WHERE seq = ? AND problem IS NOT NULL)`, seq).Scan(&bad)
	if err != nil {
		return false, fmt.Errorf("look up event %d: %w", seq, err)
	}
	return bad, nil
}

// FirstOfCause gives the first event of a thread that names a cause, or ErrNotFound.
func (p *Projection) FirstOfCause(ctx context.Context, thread, cause string) (event.Event, error) {
	var seq uint64
	var subject string
	var body []byte
	err := p.file(ctx).QueryRowContext(ctx, `SELECT seq, subject, body FROM events WHERE thread = ? AND cause = ? AND cause <> '' ORDER BY seq LIMIT 1`,
		thread, cause).Scan(&seq, &subject, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return event.Event{}, fmt.Errorf("%w: event caused by %q", ErrNotFound, cause)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("look for an event caused by %q: %w", cause, err)
	}
	e, err := event.Parse(subject, body)
	e.Seq = seq
	return e, err
}

// AsOf folds the notebook as it was when the stream had stored everything up to a time: one thread, or all when thread is empty.
func (p *Projection) AsOf(ctx context.Context, thread string, at time.Time) (*notebook.Notebook, error) {
	n := notebook.NewNotebook()
	if err := p.eachRaw(ctx, thread, &at, func(m notebook.Message) { n.Apply(m) }); err != nil {
		return nil, fmt.Errorf("fold the notebook as of %s: %w", at.Format(time.RFC3339), err)
	}
	return n, nil
}

// eachRaw gives the raw messages in order: of one thread or, when it is empty, of all; up to a time of storing when there is one.
func (p *Projection) eachRaw(ctx context.Context, thread string, until *time.Time, do func(notebook.Message)) (err error) {
	query, args := `SELECT seq, coalesce(original, seq), subject, stored, body FROM events WHERE 1`, []any{}
	if thread != "" {
		query, args = query+` AND thread = ?`, append(args, thread)
	}
	if until != nil {
		query, args = query+` AND stored <= ?`, append(args, stored(*until))
	}
	rows, err := p.file(ctx).QueryContext(ctx, query+` ORDER BY seq`, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m notebook.Message
		var at string
		if err := rows.Scan(&m.Seq, &m.Original, &m.Subject, &at, &m.Data); err != nil {
			return err
		}
		if m.Time, err = time.Parse(storedLayout, at); err != nil {
			return err
		}
		do(m)
	}
	return rows.Err()
}
