package migratelock_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	suite "github.com/golang-migrate/migrate/v4/database/testing"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// golang-migrate's own tests, which all database drivers must pass, on an ensemble in memory and
// on a real ZooKeeper.
func TestSuiteOfGolangMigrate(t *testing.T) {
	t.Run("mem", func(t *testing.T) {
		c, _ := zklocktest.New(t)
		runSuite(t, c)
	})
	t.Run("zk", func(t *testing.T) {
		ensemble.Require(t)
		e := ensemble.Start(t, ensemble.Config{})
		c, err := zklock.Open(e.URL("/suite", nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		runSuite(t, c)
	})
}

func runSuite(t *testing.T, c *zklock.Client) {
	t.Run("driver", func(t *testing.T) {
		suite.Test(t, wrapped(t, c), []byte("CREATE TABLE orders (id INTEGER)"))
	})
	t.Run("migrate", func(t *testing.T) {
		source, err := iofs.New(fstest.MapFS{
			"1_orders.up.sql":   {Data: []byte("CREATE TABLE orders (id INTEGER);")},
			"1_orders.down.sql": {Data: []byte("DROP TABLE orders;")},
		}, ".")
		if err != nil {
			t.Fatal(err)
		}
		m, err := migrate.NewWithInstance("iofs", source, "sqlite", wrapped(t, c))
		if err != nil {
			t.Fatal(err)
		}
		suite.TestMigrate(t, m)
	})
}

// wrapped returns a driver of SQLite with a lock in ZooKeeper. The suite locks a driver twice, and
// wants the second Lock to fail soon.
func wrapped(t *testing.T, c *zklock.Client) database.Driver {
	t.Helper()
	db, err := opened(filepath.Join(t.TempDir(), "database"))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := sqlite.WithInstance(db, new(sqlite.Config))
	if err != nil {
		t.Fatal(err)
	}
	d := migratelock.Wrap(inner, c.Mutex(migrations), migratelock.WithWait(time.Second))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
