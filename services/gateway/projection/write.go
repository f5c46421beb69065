package projection

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// statements are those of the writer that were prepared once. The connection has them until it is closed.
type statements map[string]*sql.Stmt

// write puts batches and the cursor behind the last of them into the file, in one transaction.
func (p *Projection) write(ctx context.Context, batches []*batch, created time.Time) error {
	tx, err := p.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit
	w := &writing{tx: tx, known: p.prepared, prepared: map[string]*sql.Stmt{}}
	var last uint64
	for _, b := range batches {
		for _, c := range b.changes {
			if err := w.exec(ctx, c); err != nil {
				return err
			}
		}
		last = b.last
	}
	for key, value := range map[string]string{
		metaVersion: strconv.Itoa(foldVersion), metaCreated: created.UTC().Format(time.RFC3339Nano), metaCursor: strconv.FormatUint(last, 10),
	} {
		if err := w.exec(ctx, change{`INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)`, []any{key, value}}); err != nil {
			return fmt.Errorf("the cursor: %w", err)
		}
	}
	if err := pointFolded.Hit(ctx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for query := range w.prepared {
		if p.prepared[query] != nil {
			continue
		}
		if p.prepared[query], err = p.writer.PrepareContext(ctx, query); err != nil {
			delete(p.prepared, query) // the next transaction prepares it for itself
		}
	}
	return nil
}

// writing is one transaction.
type writing struct {
	tx       *sql.Tx
	known    statements
	prepared statements // for this transaction
}

func (w *writing) exec(ctx context.Context, c change) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Without a context that ends: for one that does, the driver starts a goroutine for each row.
	ctx = context.WithoutCancel(ctx)
	statement := w.prepared[c.query]
	if statement == nil {
		if known := w.known[c.query]; known != nil {
			statement = w.tx.StmtContext(ctx, known)
		} else {
			var err error
			if statement, err = w.tx.PrepareContext(ctx, c.query); err != nil {
				return fmt.Errorf("prepare %q: %w", c.query, err)
			}
		}
		w.prepared[c.query] = statement
	}
	if _, err := statement.ExecContext(ctx, c.args...); err != nil {
		return fmt.Errorf("write a row: %w", err)
	}
	return nil
}
