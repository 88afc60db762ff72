package migratelock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/integration_test/fleet"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"goose": withGoose, "migrate": withMigrate}))
}

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

// withGoose is a process that migrates with goose. It waits for a line in the third migration.
func withGoose(m *fleet.Member) error {
	url, file := m.Args[0], m.Args[1]
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := opened(file)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, gooseFiles(),
		goose.WithLocker(migratelock.New(client.Mutex(migrations))),
		paused(func(ctx context.Context) error {
			m.Say("began")
			lines := make(chan error, 1)
			go func() { _, err := m.Await(); lines <- err }()
			select {
			case err := <-lines:
				return err
			case <-ctx.Done():
				m.Say("cancelled", context.Cause(ctx).Error())
				return context.Cause(ctx)
			}
		}))
	if err != nil {
		return err
	}
	m.Say("ready")
	ctx, stop := migratelock.WithLoss(context.Background())
	defer stop()
	results, err := provider.Up(ctx)
	switch {
	case errors.Is(err, zklock.ErrLost):
		m.Say("lost", err.Error())
	case err != nil:
		return err
	default:
		m.Say("migrated", strconv.Itoa(len(results)))
	}
	return nil
}

// pausing is a database driver whose second migration waits for a line.
type pausing struct {
	database.Driver
	m    *fleet.Member
	runs int
}

func (p *pausing) Run(migration io.Reader) error {
	if p.runs++; p.runs == 2 {
		p.m.Say("began")
		if _, err := p.m.Await(); err != nil {
			return err
		}
	}
	return p.Driver.Run(migration)
}

// withMigrate is a process that migrates with golang-migrate. It waits for a line in the second
// migration.
func withMigrate(m *fleet.Member) error {
	url, file := m.Args[0], m.Args[1]
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := opened(file)
	if err != nil {
		return err
	}
	inner, err := sqlite.WithInstance(db, new(sqlite.Config))
	if err != nil {
		return err
	}
	source, err := iofs.New(migrateFiles(), ".")
	if err != nil {
		return err
	}
	driver := migratelock.Wrap(&pausing{Driver: inner, m: m}, client.Mutex(migrations))
	migrator, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
	if err != nil {
		return err
	}
	defer migrator.Close()
	m.Say("ready")
	err = migrator.Up()
	switch version, dirty, _ := migrator.Version(); {
	case errors.Is(err, zklock.ErrLost):
		m.Say("lost", fmt.Sprint(version, dirty), err.Error())
	case errors.As(err, new(migrate.ErrDirty)):
		m.Say("dirty", err.Error())
	case err != nil && !errors.Is(err, migrate.ErrNoChange):
		return err
	default:
		m.Say("migrated", fmt.Sprint(version, dirty), fmt.Sprint(err))
	}
	return nil
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

// database file in a folder of the test.
func databaseFile(t *testing.T) string { return filepath.Join(t.TempDir(), "shop.db") }
