package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

var (
	// ErrNotFound: the file has nothing of that id.
	ErrNotFound = errors.New("not in the notebook")
	// ErrPending: the text is kept, but cannot be had at this moment.
	ErrPending = errors.New("the text cannot be fetched at this moment")
)

// The kinds of entity that ThreadOf finds.
const (
	Runs      = "runs"
	Facts     = "facts"
	Questions = "questions"
)

// ThreadOf gives the thread of a run, fact or question, or ErrNotFound.
func (p *Projection) ThreadOf(ctx context.Context, kind, id string) (string, error) {
	var thread string
	err := p.file(ctx).QueryRowContext(ctx, `SELECT thread FROM `+kind+` WHERE id = ?`, id).Scan(&thread)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("%w: %s %q", ErrNotFound, kind, id)
	}
	if err != nil {
		return "", fmt.Errorf("look for %s %q: %w", kind, id, err)
	}
	return thread, nil
}

// Report gives the Markdown of a run's report. ErrNotFound: it has none, or was deleted. ErrPending: its text could not be fetched.
func (p *Projection) Report(ctx context.Context, run string) (string, error) {
	var markdown, ref, sha256 sql.NullString
	var size sql.NullInt64
	err := p.file(ctx).QueryRowContext(ctx, `SELECT markdown, ref, sha256, size FROM reports WHERE run = ?`, run).Scan(&markdown, &ref, &sha256, &size)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("%w: report of run %q", ErrNotFound, run)
	case err != nil:
		return "", fmt.Errorf("read the report of run %q: %w", run, err)
	case markdown.Valid:
		return markdown.String, nil
	}
	content, err := p.artifacts.Get(ctx, artifact.Ref{Ref: ref.String, SHA256: sha256.String, Size: size.Int64})
	if err != nil {
		return "", fmt.Errorf("%w: report of run %q: %w", ErrPending, run, err)
	}
	return string(content), nil
}

// Metadata gives what the provider said about some runs: inline, or by reference when it is kept apart. A run of which it said nothing, that has not
// completed or was deleted is not in the answer.
func (p *Projection) Metadata(ctx context.Context, runs []string) (metadata map[string]event.Blob, err error) {
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT run, coalesce(metadata, ''), coalesce(metadata_ref, ''), coalesce(metadata_sha256, ''),
		coalesce(metadata_size, 0) FROM reports WHERE run IN (SELECT value FROM json_each(?)) AND coalesce(metadata, metadata_ref) IS NOT NULL`, list(runs))
	if err != nil {
		return nil, fmt.Errorf("read the metadata of runs: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	metadata = map[string]event.Blob{}
	for rows.Next() {
		var run string
		var b event.Blob
		if err := rows.Scan(&run, &b.Text, &b.Ref, &b.SHA256, &b.Size); err != nil {
			return nil, fmt.Errorf("read the metadata of runs: %w", err)
		}
		metadata[run] = b
	}
	return metadata, rows.Err()
}

// Page is one page that a report cites; N is the number of its marker.
type Page struct {
	N          int
	URL, Title string
}

// Pages lists what the report of a run cites, in the order of the markers.
func (p *Projection) Pages(ctx context.Context, run string) (pages []Page, err error) {
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT n, url, title FROM pages WHERE run = ? ORDER BY n`, run)
	if err != nil {
		return nil, fmt.Errorf("read the pages of run %q: %w", run, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var page Page
		if err := rows.Scan(&page.N, &page.URL, &page.Title); err != nil {
			return nil, fmt.Errorf("read the pages of run %q: %w", run, err)
		}
		pages = append(pages, page)
	}
	return pages, rows.Err()
}

// Source is a page as a thread knows it: shown as first cited, the claims of all its citations united.
type Source struct {
	ID          string
	URL         string
	Canonical   string
	Title       string
	Summary     string
	PublishedAt *time.Time
	Claims      []string
	Runs        []string // that cited it, first first
}

// Sources lists the sources of a thread, first cited first.
func (p *Projection) Sources(ctx context.Context, thread string) (sources []Source, err error) {
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT source, run, url, canonical_url, title, summary, published_at, claims FROM pages
		WHERE thread = ? AND source <> '' ORDER BY seq, n`, thread)
	if err != nil {
		return nil, fmt.Errorf("read the sources of thread %q: %w", thread, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	at := map[string]int{}
	claimed := map[[2]string]bool{}
	for rows.Next() {
		var cited Source
		var run string
		var published, claims sql.NullString
		if err := rows.Scan(&cited.ID, &run, &cited.URL, &cited.Canonical, &cited.Title, &cited.Summary, &published, &claims); err != nil {
			return nil, fmt.Errorf("read the sources of thread %q: %w", thread, err)
		}
		if t, err := time.Parse(time.RFC3339Nano, published.String); err == nil {
			cited.PublishedAt = &t
		}
		i, known := at[cited.ID]
		if !known {
			i = len(sources)
			at[cited.ID] = i
			sources = append(sources, cited)
		}
		sources[i].unite(cited, run, texts(claims.String), claimed)
	}
	return sources, rows.Err()
}

// unite adds one more citation: its run, the claims that are new, and whatever the earlier ones did not say.
func (s *Source) unite(cited Source, run string, claims []string, claimed map[[2]string]bool) {
	if len(s.Runs) == 0 || s.Runs[len(s.Runs)-1] != run { // pages come run by run
		s.Runs = append(s.Runs, run)
	}
	for _, c := range claims {
		if key := [2]string{s.ID, c}; !claimed[key] {
			claimed[key] = true
			s.Claims = append(s.Claims, c)
		}
	}
	if s.Title == "" {
		s.Title = cited.Title
	}
	if s.Summary == "" {
		s.Summary = cited.Summary
	}
	if s.PublishedAt == nil {
		s.PublishedAt = cited.PublishedAt
	}
}

func texts(body string) []string {
	var items []string
	if json.Unmarshal([]byte(body), &items) != nil {
		return nil
	}
	return items
}

// Briefs lists all briefs of a thread, newest first.
func (p *Projection) Briefs(ctx context.Context, thread string) (briefs []notebook.Brief, err error) {
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT cycle, closing, run_count, findings, disputed, gaps, relationships, withheld, dropped_sentences,
		markdown, engine, model, created_at FROM briefs WHERE thread = ? ORDER BY seq DESC`, thread)
	if err != nil {
		return nil, fmt.Errorf("read the briefs of thread %q: %w", thread, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b notebook.Brief
		var at string
		err := rows.Scan(&b.Cycle, &b.Closing, &b.RunCount, column(&b.Findings), column(&b.Disputed), column(&b.Gaps), column(&b.Relationships),
			column(&b.Withheld), &b.DroppedSentences, &b.Markdown, &b.Engine, &b.Model, &at)
		if err != nil {
			return nil, fmt.Errorf("read the briefs of thread %q: %w", thread, err)
		}
		b.At, _ = time.Parse(time.RFC3339Nano, at)
		briefs = append(briefs, b)
	}
	return briefs, rows.Err()
}

// Coverages lists all maps of a thread, newest first.
func (p *Projection) Coverages(ctx context.Context, thread string) (maps []notebook.Coverage, err error) {
	rows, err := p.file(ctx).QueryContext(ctx, `SELECT cycle, closing, topics, engine, model, created_at FROM coverage WHERE thread = ? ORDER BY seq DESC`, thread)
	if err != nil {
		return nil, fmt.Errorf("read the coverage of thread %q: %w", thread, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c notebook.Coverage
		var at string
		if err := rows.Scan(&c.Cycle, &c.Closing, column(&c.Topics), &c.Engine, &c.Model, &at); err != nil {
			return nil, fmt.Errorf("read the coverage of thread %q: %w", thread, err)
		}
		c.At, _ = time.Parse(time.RFC3339Nano, at)
		maps = append(maps, c)
	}
	return maps, rows.Err()
}

// column scans a JSON text into items.
func column[T any](items *[]T) sql.Scanner { return jsonColumn[T]{items} }

type jsonColumn[T any] struct{ items *[]T }

func (c jsonColumn[T]) Scan(value any) error {
	body, ok := value.(string)
	if !ok {
		return fmt.Errorf("a list is kept as %T, not as text", value)
	}
	return json.Unmarshal([]byte(body), c.items)
}
