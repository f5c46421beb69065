package projection

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
)

// text is a report, or the claims of one page (N > 0), that an event names by reference.
type text struct {
	run  string
	n    int
	blob event.Blob
}

const (
	fetchLimit = 100 // texts looked for at once
	fetchAgain = 5 * time.Minute
)

// fetchTexts brings texts that came by reference into the file. One that cannot be had is tried again later, and holds nothing up.
func (p *Projection) fetchTexts(ctx context.Context) {
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.unfetched:
		case <-time.After(wait):
		}
		left, err := p.fetchSome(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.log.Warn().Err(err).Msg("some texts could not be fetched yet")
			wait = min(max(2*wait, time.Second), fetchAgain)
		case left:
			wait = 0
		default:
			wait = fetchAgain
		}
	}
}

// fetchSome fetches what it can of the texts that are missing. The error is that of the last one that failed; left says that there may be more.
func (p *Projection) fetchSome(ctx context.Context) (left bool, err error) {
	texts, err := p.missingTexts(ctx)
	if err != nil {
		return false, err
	}
	var failed error
	for _, t := range texts {
		content, err := p.artifacts.Get(ctx, artifact.Ref{Ref: t.blob.Ref, SHA256: t.blob.SHA256, Size: t.blob.Size})
		if err == nil {
			err = p.keepText(ctx, t, content)
		}
		if err != nil {
			failed = err
		}
	}
	return failed == nil && len(texts) >= fetchLimit, failed
}

func (p *Projection) missingTexts(ctx context.Context) (texts []text, err error) {
	rows, err := p.readers.QueryContext(ctx, `
		SELECT * FROM (SELECT run, 0, ref, sha256, coalesce(size, 0) FROM reports WHERE markdown IS NULL
		UNION ALL SELECT run, n, claims_ref, claims_sha256, coalesce(claims_size, 0) FROM pages WHERE claims IS NULL)
		ORDER BY random() LIMIT ?`, fetchLimit) // at random, so that those that cannot be had do not stand before the others
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t text
		if err := rows.Scan(&t.run, &t.n, &t.blob.Ref, &t.blob.SHA256, &t.blob.Size); err != nil {
			return nil, err
		}
		texts = append(texts, t)
	}
	return texts, rows.Err()
}

func (p *Projection) keepText(ctx context.Context, t text, content []byte) error {
	if t.n == 0 {
		_, err := p.writer.ExecContext(ctx, `UPDATE reports SET markdown = ? WHERE run = ? AND ref = ?`, string(content), t.run, t.blob.Ref)
		return err
	}
	var claims []string
	if err := json.Unmarshal(content, &claims); err != nil {
		claims = nil // not what was promised: shown as none, rather than asked for again for ever
	}
	_, err := p.writer.ExecContext(ctx, `UPDATE pages SET claims = ? WHERE run = ? AND n = ?`, list(claims), t.run, t.n)
	return err
}
