package migratelock_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

// opened opens the database in a file. Several processes may do so.
func opened(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
}

// gooseFiles are migrations of goose. The third and fourth one are Go migrations: see paused.
func gooseFiles() fs.FS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"00001_orders.sql":  file("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n-- +goose Down\nDROP TABLE orders;\n"),
		"00002_persons.sql": file("-- +goose Up\nCREATE TABLE persons (id INTEGER);\n-- +goose Down\nDROP TABLE persons;\n"),
	}
}

// paused returns two Go migrations; before is called in the first one.
func paused(before func(context.Context) error) goose.ProviderOption {
	return goose.WithGoMigrations(
		goose.NewGoMigration(3, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "CREATE TABLE goods (id INTEGER)"); err != nil {
				return err
			}
			return before(ctx)
		}}, nil),
		goose.NewGoMigration(4, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE stores (id INTEGER)")
			return err
		}}, nil))
}

// migrateFiles are migrations of golang-migrate.
func migrateFiles() fs.FS {
	files := make(fstest.MapFS)
	for i, table := range []string{"orders", "persons", "goods"} {
		files[fmt.Sprintf("%d_%s.up.sql", i+1, table)] = &fstest.MapFile{Data: []byte("CREATE TABLE " + table + " (id INTEGER);")}
	}
	return files
}

// tables returns the tables of the database in a file that the migrations make.
func tables(t *testing.T, file string) (names []string) {
	t.Helper()
	db, err := opened(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE name IN ('orders', 'persons', 'goods', 'stores') ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// databaseFile returns a database file in a folder of the test.
func databaseFile(t *testing.T) string { return filepath.Join(t.TempDir(), "shop.db") }
