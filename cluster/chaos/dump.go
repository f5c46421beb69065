package chaos

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// Dump writes what a SQLite file holds as text: every table with its rows, in an order of their own. Two files with the same dump
// hold the same.
func Dump(path string) (string, error) {
	db, err := sql.Open("sqlite3", "file:"+url.PathEscape(path)+"?mode=ro")
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // only read
	tables, err := column(db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		return "", fmt.Errorf("dump %s: %w", path, err)
	}
	var out strings.Builder
	for _, table := range tables {
		if err := dumpTable(db, table, &out); err != nil {
			return "", fmt.Errorf("dump %s of %s: %w", table, path, err)
		}
	}
	return out.String(), nil
}

func column(db *sql.DB, query string) (out []string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}

func dumpTable(db *sql.DB, table string, out *strings.Builder) error {
	columns, err := column(db, fmt.Sprintf("SELECT name FROM pragma_table_info('%s') ORDER BY cid", table))
	if err != nil {
		return err
	}
	var quoted []string
	for _, name := range columns {
		quoted = append(quoted, `quote("`+name+`")`)
	}
	rows, err := column(db, fmt.Sprintf(`SELECT %s AS line FROM "%s" ORDER BY line`, strings.Join(quoted, ` || ' | ' || `), table))
	if err != nil {
		return err
	}
	for _, row := range rows {
		fmt.Fprintf(out, "%s: %s\n", table, row)
	}
	return nil
}
