package migratelock_test

import (
	"database/sql"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	suite "github.com/golang-migrate/migrate/v4/database/testing"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// onBoth runs a suite on an ensemble in memory, and on a real ZooKeeper. open returns a client
// that has a session, as in a program that has been running for a while.
func onBoth(t *testing.T, suite func(t *testing.T, open func(*testing.T) *zklock.Client)) {
	t.Run("mem", func(t *testing.T) {
		e := memdriver.New()
		t.Cleanup(func() { _ = e.Close() })
		suite(t, func(t *testing.T) *zklock.Client { return client(t, e) })
	})
	t.Run("zk", func(t *testing.T) {
		ensemble.Require(t)
		e := ensemble.Start(t, ensemble.Config{})
		suite(t, func(t *testing.T) *zklock.Client {
			c, err := zklock.Open(e.URL("/"+strings.ReplaceAll(t.Name(), "/", "-"), nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			held(t, c) // opens the session
			return c
		})
	})
}

// goose's own tests of lockers: one of five lockers gets the lock, and unlocks with a context that
// has ended; of five providers, one applies all migrations.
func TestSuiteOfGoose(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(*testing.T) *zklock.Client) {
		t.Run("concurrent locking", func(t *testing.T) {
			// The winner holds for twice as long as the others wait, and the suite wants all to
			// end after 5 seconds more than that wait.
			locktesting.TestConcurrentLocking(t, new(sql.DB), func(t *testing.T) lock.Locker {
				return migratelock.New(open(t).Mutex(migrations))
			}, 2*time.Second)
		})
		for what, option := range map[string]func(*migratelock.Locker) goose.ProviderOption{
			"locker":         func(l *migratelock.Locker) goose.ProviderOption { return goose.WithLocker(l) },
			"session locker": func(l *migratelock.Locker) goose.ProviderOption { return goose.WithSessionLocker(l) },
		} {
			t.Run("provider locking/"+what, func(t *testing.T) {
				file := databaseFile(t)
				locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
					return provider(t, file, option(migratelock.New(open(t).Mutex(migrations))), nil)
				})
			})
		}
	})
}

// golang-migrate's own tests, which all database drivers must pass.
func TestSuiteOfGolangMigrate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *zklock.Client) { runSuite(t, open(t)) })
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
// wants the second Lock to fail within 15 seconds. The other ones must get the lock, also on a busy
// machine.
func wrapped(t *testing.T, c *zklock.Client) database.Driver {
	t.Helper()
	db, err := opened(databaseFile(t))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := sqlite.WithInstance(db, new(sqlite.Config))
	if err != nil {
		t.Fatal(err)
	}
	d := migratelock.Wrap(inner, c.Mutex(migrations), migratelock.WithWait(5*time.Second))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
