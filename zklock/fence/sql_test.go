package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

var dialects = []fence.Dialect{fence.MySQL, fence.PostgreSQL, fence.SQLite}

// script is a database whose answers the test gives. It has one connection, which is
// its own driver.Connector. The tests in integration_test/databases use real ones.
type script struct {
	rows    int64    // affected by the statement
	failed  error    // the statement's
	unknown error    // the error of the number of rows
	newest  []string // the columns newest and writer; none if the row does not exist
	unread  error    // the error of reading them

	statements []string
	values     []driver.NamedValue // of the last statement
	ends       string              // c for each commit, r for each rollback
}

var (
	_ driver.Connector      = (*script)(nil)
	_ driver.Conn           = (*script)(nil)
	_ driver.ExecerContext  = (*script)(nil)
	_ driver.QueryerContext = (*script)(nil)
	_ driver.Result         = (*script)(nil)
)

func (s *script) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *script) Driver() driver.Driver                        { return nil }
func (s *script) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s *script) Close() error                                 { return nil }
func (s *script) Begin() (driver.Tx, error)                    { return s, nil }
func (s *script) Commit() error                                { s.ends += "c"; return nil }
func (s *script) Rollback() error                              { s.ends += "r"; return nil }
func (s *script) LastInsertId() (int64, error)                 { return 0, errors.ErrUnsupported }
func (s *script) RowsAffected() (int64, error)                 { return s.rows, s.unknown }
func (s *script) add(statement string, v []driver.NamedValue) {
	s.statements, s.values = append(s.statements, statement), v
}
func (s *script) Columns() []string { return []string{"newest", "writer"} }

func (s *script) ExecContext(_ context.Context, statement string, values []driver.NamedValue) (driver.Result, error) {
	s.add(statement, values)
	return s, s.failed
}

func (s *script) QueryContext(_ context.Context, statement string, values []driver.NamedValue) (driver.Rows, error) {
	s.add(statement, values)
	if s.unread != nil {
		return nil, s.unread
	}
	return &record{s, s.newest}, nil
}

// record is the answer to a query: one row, or none.
type record struct {
	*script
	columns []string
}

func (r *record) Next(to []driver.Value) error {
	if len(r.columns) == 0 {
		return io.EOF
	}
	for i := range to {
		to[i] = r.columns[i]
	}
	r.columns = nil
	return nil
}

// run calls CheckSequencer in a transaction of the scripted database.
func (s *script) run(t *testing.T, dialect fence.Dialect, resource string, seq fence.Sequencer) error {
	t.Helper()
	db := sql.OpenDB(s)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return dialect.CheckSequencer(t.Context(), tx, resource, seq)
}

// TestSQLAcceptsByTheNumberOfRows: in MySQL a refusal may affect two rows, if the
// connection counts the rows that were found.
func TestSQLAcceptsByTheNumberOfRows(t *testing.T) {
	least := map[fence.Dialect]int64{fence.MySQL: 3, fence.PostgreSQL: 1, fence.SQLite: 1}
	older, newer := seq("a", zklock.Exclusive, 7, 1), seq("a", zklock.Exclusive, 9, 0)
	for _, dialect := range dialects {
		for _, mode := range []zklock.Mode{zklock.Exclusive, zklock.Shared} {
			for rows := range int64(5) {
				s := &script{rows: rows, newest: []string{newer.Token.String(), older.Token.String()}}
				given := seq("a", mode, 6, 0)
				err := s.run(t, dialect, "r", given)
				if rows >= least[dialect] {
					if err != nil || len(s.statements) != 1 {
						t.Errorf("%s, %v, %d rows: %v after %d statements, want acceptance after 1", dialect, mode, rows, err, len(s.statements))
					}
					continue
				}
				because := newer.Token
				if mode == zklock.Shared {
					because = older.Token // that of the newest writer
				}
				var stale *fence.StaleError
				if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) || *stale != (fence.StaleError{Name: "a", Token: given.Token, Newest: because}) {
					t.Errorf("%s, %v, %d rows: %v, want a refusal because of %v", dialect, mode, rows, err, because)
				}
				if len(s.statements) != 2 {
					t.Errorf("%s, %v, %d rows: %d statements, want 2", dialect, mode, rows, len(s.statements))
				}
			}
		}
	}
}

// TestSQLFillsEachParameter: a statement has as many values as parameters, the resource
// and the token.
func TestSQLFillsEachParameter(t *testing.T) {
	for _, dialect := range dialects {
		for _, mode := range []zklock.Mode{zklock.Exclusive, zklock.Shared} {
			s := &script{rows: 4}
			given := seq("a", mode, 6, 0)
			if err := s.run(t, dialect, "r", given); err != nil {
				t.Fatal(err)
			}
			want := 2 // numbered ones
			if dialect == fence.MySQL {
				want = strings.Count(s.statements[0], "?")
			}
			seen := make(map[any]int)
			for _, v := range s.values {
				seen[v.Value]++
			}
			if len(s.values) != want || seen["r"] == 0 || seen["r"]+seen[given.Token.String()] != want {
				t.Errorf("%s, %v: the values %v for %d parameters", dialect, mode, s.values, want)
			}
		}
	}
}

// TestSQLPassesErrorsOn: the errors of a check wrap those of the driver, so that the caller can
// repeat a transaction after a deadlock.
func TestSQLPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, dialect := range dialects {
		for name, c := range map[string]struct {
			s     *script
			stale bool
		}{
			"the statement fails":            {&script{failed: broken}, false},
			"the number of rows is unknown":  {&script{rows: 4, unknown: broken}, false},
			"the newer token cannot be read": {&script{unread: broken}, true},
		} {
			err := c.s.run(t, dialect, "r", seq("a", zklock.Exclusive, 6, 0))
			if !errors.Is(err, broken) || errors.Is(err, fence.ErrStale) != c.stale {
				t.Errorf("%s, %s: %v", dialect, name, err)
			}
		}
		for _, row := range [][]string{nil, {"nonsense", "nonsense"}} {
			err := (&script{newest: row}).run(t, dialect, "r", seq("a", zklock.Exclusive, 6, 0))
			if !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s: the row %q: %v, want a refusal", dialect, row, err)
			}
		}
	}
}

// TestSQLSendsNothingThatIsWrong: a check makes no statement for arguments that the
// database would misunderstand.
func TestSQLSendsNothingThatIsWrong(t *testing.T) {
	good := seq("a", zklock.Exclusive, 6, 0)
	for _, c := range []struct {
		dialect  fence.Dialect
		resource string
		seq      fence.Sequencer
		unfenced bool
		want     string
	}{
		{0, "r", good, false, `unknown SQL dialect Dialect(0): use fence.MySQL, fence.PostgreSQL or fence.SQLite`},
		{9, "r", good, false, `unknown SQL dialect Dialect(9)`},
		{fence.SQLite, "", good, false, "the name of the resource is empty"},
		{fence.SQLite, strings.Repeat("x", 513), good, false, "has 513 bytes: use at most 512"},
		{fence.SQLite, "a\xff", good, false, "is not UTF-8"},
		{fence.SQLite, "a\x00b", good, false, "contains a NUL"},
		{fence.SQLite, "r", fence.Sequencer{Name: "a", Mode: zklock.Exclusive}, true, `lock "a"`},
		{fence.SQLite, "r", seq("a", zklock.Permit, 6, 0), true, `lock "a"`},
		{fence.SQLite, "r", seq("a", zklock.Exclusive, -6, 0), false, `lock "a"`},
	} {
		s := &script{rows: 4}
		err := s.run(t, c.dialect, c.resource, c.seq)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fence.ErrUnfenced) != c.unfenced {
			t.Errorf("%q, %.20q, %v: %v, want %q", c.dialect, c.resource, c.seq, err, c.want)
		}
		if len(s.statements) != 0 {
			t.Errorf("%q, %.20q: the statements %q, want none", c.dialect, c.resource, s.statements)
		}
	}
	if err := (&script{rows: 4}).run(t, fence.SQLite, strings.Repeat("x", 512), good); err != nil {
		t.Error(err)
	}
}

// TestSchemaOfEachDialect: each dialect has one statement that creates the table.
func TestSchemaOfEachDialect(t *testing.T) {
	var all []string
	for _, dialect := range dialects {
		schema := dialect.Schema()
		if !strings.HasPrefix(schema, "CREATE TABLE IF NOT EXISTS zklock_fence (") || strings.Contains(schema, ";") {
			t.Errorf("%s: %q", dialect, schema)
		}
		// A resource that only readers have used has the zero token as its writer's token.
		if !strings.Contains(schema, fmt.Sprintf("DEFAULT '%v'", zklock.Token{})) {
			t.Errorf("%s: the zero token is not the default of writer: %s", dialect, schema)
		}
		all = append(all, schema)
	}
	if slices.Sort(all); len(slices.Compact(all)) != len(dialects) {
		t.Error("two dialects have the same schema")
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "Dialect(9)") {
			t.Errorf("the schema of no dialect: %v", v)
		}
	}()
	_ = fence.Dialect(9).Schema()
}
