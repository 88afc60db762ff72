package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/zklock/go-zklock/zklock/fence"
)

// shared is a server that all tests of a process use. The first of them starts it.
type shared struct {
	name   string
	begin  func() (*server, string, error)
	once   sync.Once
	server *server
	source string
	err    error
}

var (
	postgres = &shared{name: "PostgreSQL", begin: startPostgres}
	mariaDB  = &shared{name: "MariaDB", begin: startMariaDB}
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*shared{postgres, mariaDB} {
		if s.server != nil {
			if err := s.server.close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

// address returns the server's data source name.
func (s *shared) address(t *testing.T) string {
	t.Helper()
	s.once.Do(func() { s.server, s.source, s.err = s.begin() })
	required(t, s.name, s.err)
	return s.source
}

// database is one kind of database, with one way to connect to it.
type database struct {
	name    string
	dialect fence.Dialect

	// source returns the name of the driver, and the data source name.
	source func(t *testing.T) (driver, source string)

	// waiting counts the transactions that wait for a lock; "" if the database has no
	// such query.
	waiting string

	// again reports whether the database says that the transaction may be tried again.
	again func(error) bool
}

// databases are all kinds, and the ways to connect that change how the driver sends a
// statement or how the database answers.
var databases = []database{
	{"SQLite", fence.SQLite, onSQLite, "", busy},
	{"PostgreSQL", fence.PostgreSQL, onPostgres(""), postgresWaits, conflict},
	{"PostgreSQL, simple protocol", fence.PostgreSQL, onPostgres(" default_query_exec_mode=simple_protocol"), postgresWaits, conflict},
	{"MariaDB", fence.MySQL, onMariaDB(""), innoDBWaits, deadlock},
	{"MariaDB, rows found", fence.MySQL, onMariaDB("?clientFoundRows=true"), innoDBWaits, deadlock},
	{"MariaDB, values in the statement", fence.MySQL, onMariaDB("?interpolateParams=true"), innoDBWaits, deadlock},
	{"MariaDB, assignments all at once", fence.MySQL, onMariaDB("?sql_mode=%27SIMULTANEOUS_ASSIGNMENT%27"), innoDBWaits, deadlock},
	{"MariaDB, not strict", fence.MySQL, onMariaDB("?clientFoundRows=true&sql_mode=%27%27"), innoDBWaits, deadlock},
}

const (
	postgresWaits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	innoDBWaits   = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
)

// onSQLite is a new file. A transaction takes the lock for writing when it begins, and
// waits for it.
func onSQLite(t *testing.T) (driver, source string) {
	return "sqlite", "file:" + filepath.Join(t.TempDir(), "db") + "?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(60000)"
}

func onPostgres(params string) func(*testing.T) (driver, source string) {
	return func(t *testing.T) (driver, source string) { return "pgx", postgres.address(t) + params }
}

func onMariaDB(params string) func(*testing.T) (driver, source string) {
	return func(t *testing.T) (driver, source string) { return "mysql", mariaDB.address(t) + params }
}

// busy reports whether SQLite was locked by another transaction.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// conflict reports a deadlock or a serialization failure of PostgreSQL.
func conflict(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40P01" || e.Code == "40001")
}

// deadlock reports a deadlock of InnoDB.
func deadlock(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1213
}

// open connects to the database, and creates its table.
func (d database) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.source(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.ExecContext(within(t), d.dialect.Schema()); err != nil {
		t.Fatal(err)
	}
	return db
}

// within returns a context for the statements of a test. A lock that is never released fails
// the test, and does not stop it.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// everywhere runs a test on each of the databases, with an empty table.
func everywhere(t *testing.T, test func(t *testing.T, d database, db *sql.DB)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			if _, err := db.ExecContext(within(t), "DELETE FROM zklock_fence"); err != nil {
				t.Fatal(err)
			}
			test(t, d, db)
		})
	}
}
