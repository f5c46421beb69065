package projection

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// write puts a batch and the cursor behind it into the file, in one transaction.
func (p *Projection) write(ctx context.Context, b *batch, created time.Time) error {
	tx, err := p.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit
	prepared := map[string]*sql.Stmt{}
	for _, c := range b.changes {
		statement := prepared[c.query]
		if statement == nil {
			if statement, err = tx.PrepareContext(ctx, c.query); err != nil {
				return fmt.Errorf("prepare %q: %w", c.query, err)
			}
			prepared[c.query] = statement
		}
		if _, err := statement.ExecContext(ctx, c.args...); err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
	}
	for key, value := range map[string]string{
		metaVersion: strconv.Itoa(foldVersion), metaCreated: created.UTC().Format(time.RFC3339Nano), metaCursor: strconv.FormatUint(b.last, 10),
	} {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)`, key, value); err != nil {
			return fmt.Errorf("write the cursor: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
