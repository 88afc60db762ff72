package databases

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

func seq(name string, mode zklock.Mode, zxid int64, turn uint32) fence.Sequencer {
	return fence.Sequencer{Name: name, Mode: mode, Token: zklock.Token{Zxid: zxid, Turn: turn}}
}

// writer is the sequencer of a writer of the resource "r".
func writer(zxid int64) fence.Sequencer { return seq("r", zklock.Exclusive, zxid, 0) }

func begin(t *testing.T, db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(within(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // an error means that it has ended
	return tx
}

// record records a token in a transaction of its own. The resource is the lock's name.
func record(t *testing.T, db *sql.DB, dialect fence.Dialect, s fence.Sequencer) error {
	t.Helper()
	tx := begin(t, db, nil)
	if err := dialect.CheckSequencer(within(t), tx, s.Name, s); err != nil {
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return nil
}

// recorded reads the tokens of the resource "r", "" if there are none.
func recorded(t *testing.T, db *sql.DB) (tokens string) {
	t.Helper()
	rows, err := db.QueryContext(within(t), "SELECT newest, writer FROM zklock_fence WHERE resource = 'r'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var newest, writer string
		if err := rows.Scan(&newest, &writer); err != nil {
			t.Fatal(err)
		}
		tokens += newest + " " + writer
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// refused checks that err is the refusal of s because of a newer token.
func refused(t *testing.T, err error, s fence.Sequencer, because zklock.Token) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != (fence.StaleError{Name: s.Name, Token: s.Token, Newest: because}) {
		t.Errorf("token %v: %v, want a refusal because of %v", s.Token, err, because)
	}
}

// TestSQLAnswersAsGuardDoes gives the same writers' and readers' tokens to a database and
// to a Guard.
func TestSQLAnswersAsGuardDoes(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		random := rand.New(rand.NewPCG(1, 2))
		var guard fence.Guard
		answers := make(map[string]int)
		for step := range 400 {
			mode := zklock.Exclusive
			if random.IntN(2) == 0 {
				mode = zklock.Shared
			}
			// Later steps have greater tokens, so that some are accepted until the end.
			s := seq([]string{"r", "q"}[random.IntN(2)], mode, int64(1+step/8+random.IntN(8)), uint32(random.IntN(2)))
			got, want := record(t, db, d.dialect, s), guard.Check([]fence.Sequencer{s})
			var because *fence.StaleError
			switch {
			case want == nil && got != nil:
				t.Fatalf("step %d: %v: %v, but a Guard accepts it", step, s, got)
			case errors.As(want, &because):
				refused(t, got, s, because.Newest)
				answers[mode.String()+" refused"]++
			default:
				answers[mode.String()+" accepted"]++
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		if len(answers) != 4 {
			t.Errorf("the test has seen %v only", answers)
		}
	})
}

// TestSQLKeepsResourcesApart: names that a database may take for equal are different
// resources.
func TestSQLKeepsResourcesApart(t *testing.T) {
	long := strings.Repeat("ä", 255)
	names := []string{"a", "A", "a ", " a", "a%", "a\\", "a'", "ä", "a\u0308", "\U0001F512", long + "1", long + "2"}
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		for i, name := range names {
			// Each token is less than those of all names before.
			if err := record(t, db, d.dialect, seq(name, zklock.Exclusive, int64(100-i), 0)); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		for i, name := range names {
			s := seq(name, zklock.Exclusive, int64(99-i), 0)
			refused(t, record(t, db, d.dialect, s), s, zklock.Token{Zxid: int64(100 - i)})
		}
	})
}

// TestSQLRolledBackLeavesNoTrace: the token is recorded with the caller's writes, or not
// at all.
func TestSQLRolledBackLeavesNoTrace(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		for _, first := range []bool{true, false} {
			before := recorded(t, db)
			if (before == "") != first {
				t.Fatalf("the table has %q", before)
			}
			tx := begin(t, db, nil)
			if err := d.dialect.CheckSequencer(within(t), tx, "r", writer(9)); err != nil {
				t.Fatal(err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if after := recorded(t, db); after != before {
				t.Errorf("the table had %q before the transaction that was rolled back, and has %q", before, after)
			}
			if err := record(t, db, d.dialect, writer(5)); err != nil {
				t.Errorf("the token 5 after a rollback of 9: %v", err)
			}
		}
	})
}

// TestSQLRefusesWithoutAChange: a refusal leaves the row as it was, even if the caller
// commits its transaction by mistake.
func TestSQLRefusesWithoutAChange(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		for _, s := range []fence.Sequencer{writer(5), seq("r", zklock.Shared, 9, 0)} {
			if err := record(t, db, d.dialect, s); err != nil {
				t.Fatal(err)
			}
		}
		before := recorded(t, db)
		for _, c := range []struct {
			late    fence.Sequencer
			because int64
		}{{writer(4), 9}, {writer(7), 9}, {seq("r", zklock.Shared, 4, 0), 5}} {
			tx := begin(t, db, nil)
			refused(t, d.dialect.CheckSequencer(within(t), tx, "r", c.late), c.late, zklock.Token{Zxid: c.because})
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if after := recorded(t, db); after != before {
				t.Errorf("%v was refused, and changed %q to %q", c.late, before, after)
			}
		}
	})
}

// TestSQLInAnotherDialect: a database refuses the statements of another dialect, or
// understands them. In no case it accepts a stale token.
func TestSQLInAnotherDialect(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		if err := record(t, db, d.dialect, writer(9)); err != nil {
			t.Fatal(err)
		}
		for _, other := range []fence.Dialect{fence.MySQL, fence.PostgreSQL, fence.SQLite} {
			for _, mode := range []zklock.Mode{zklock.Exclusive, zklock.Shared} {
				if err := record(t, db, other, seq("r", mode, 5, 0)); err == nil {
					t.Errorf("a stale token was accepted, with a statement for %s", other)
				}
			}
		}
	})
}

// TestSQLWithoutItsTable: the database's error names the table.
func TestSQLWithoutItsTable(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		if _, err := db.ExecContext(within(t), "DROP TABLE zklock_fence"); err != nil {
			t.Fatal(err)
		}
		err := record(t, db, d.dialect, writer(1))
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "zklock_fence") {
			t.Errorf("%v, want an error about the table zklock_fence", err)
		}
	})
}

// TestSQLEndsWithItsContext: a context that has ended is an error, and nothing is
// recorded.
func TestSQLEndsWithItsContext(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		ctx, cancel := context.WithCancel(within(t))
		tx := begin(t, db, nil)
		cancel()
		if err := d.dialect.CheckSequencer(ctx, tx, "r", writer(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
		_ = tx.Rollback() // the driver may have closed the connection
		if after := recorded(t, db); after != "" {
			t.Errorf("the table has %q", after)
		}
	})
}
