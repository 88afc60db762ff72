package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// TestInTxEndsTheTransaction: it commits what a function has done that returned nil, and nothing
// else. A stale lock's function is not called.
func TestInTxEndsTheTransaction(t *testing.T) {
	c := open(t)
	lock, err := c.Mutex("a").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newer := zklock.Token{Zxid: 1 << 62}.String()
	broken := errors.New("broken")
	for _, x := range []struct {
		name   string
		script script
		fn     func(*sql.Tx) error
		want   error
		called bool
		ends   string
	}{
		{"it succeeds", script{rows: 1}, func(*sql.Tx) error { return nil }, nil, true, "c"},
		{"it fails", script{rows: 1}, func(*sql.Tx) error { return broken }, broken, true, "r"},
		{"it panics", script{rows: 1}, func(*sql.Tx) error { panic("broken") }, nil, true, "r"},
		{"the lock is stale", script{newest: []string{newer, newer}}, func(*sql.Tx) error { return nil }, fence.ErrStale, false, "r"},
		{"the check fails", script{failed: broken}, func(*sql.Tx) error { return nil }, broken, false, "r"},
	} {
		s := x.script
		db := sql.OpenDB(&s)
		called := false
		func() {
			defer func() { _ = recover() }()
			err := fence.InTx(t.Context(), db, fence.PostgreSQL, lock, func(tx *sql.Tx) error { called = true; return x.fn(tx) })
			if !errors.Is(err, x.want) {
				t.Errorf("%s: %v, want %v", x.name, err, x.want)
			}
		}()
		if called != x.called || s.ends != x.ends {
			t.Errorf("%s: function called: %t, ends of the transaction: %q, want %t and %q", x.name, called, s.ends, x.called, x.ends)
		}
		db.Close()
	}
}

// TestCheckOfEachName: a lock is checked for each of its names, in their order. One without a
// sequencer sends nothing.
func TestCheckOfEachName(t *testing.T) {
	c := open(t)
	both, err := zklock.All(c.Mutex("b"), c.RWMutex("a").Reader()).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	permit, err := c.Semaphore("p", 1).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		lock  *zklock.Lock
		first []any // the resource of each statement
		want  error
	}{
		{"two names", both, []any{"a", "b"}, nil},
		{"permit", permit, nil, fence.ErrUnfenced},
		{"nil", nil, nil, fence.ErrUnfenced},
	} {
		tx := &pgxLike{}
		if err := fence.PostgreSQL.Check(t.Context(), fence.Pgx(tx), x.lock); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
		if len(tx.first) != len(x.first) {
			t.Fatalf("%s: statements for %v, want %v", x.name, tx.first, x.first)
		}
		for i, want := range x.first {
			if tx.first[i] != want {
				t.Errorf("%s: statements for %v, want %v", x.name, tx.first, x.first)
			}
		}
	}
}

// TestStaleThoughHeld: a refusal of a lock that is held says that the token in the table is none of a later holder, as after a
// development server that was started again. One of a lock that was lost says that.
func TestStaleThoughHeld(t *testing.T) {
	c, e := zklocktest.New(t)
	lock, err := c.Mutex("accounts/7").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(&script{newest: []string{"0000000f00000001.00000000", "0000000f00000001.00000000"}})
	defer db.Close()
	// The transaction ends before the test does: database/sql rolls one back on a goroutine of its own whose context has ended.
	check := func() error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return fence.SQLite.Check(t.Context(), tx, lock)
	}
	for _, held := range []bool{true, false} {
		if !held {
			e.ExpireAll()
			_, _ = c.Mutex("accounts/7").Acquire(t.Context())
		}
		err := check()
		stale := (*fence.StaleError)(nil)
		if !errors.As(err, &stale) || stale.Held != held || strings.Contains(err.Error(), "must stop its work") == held {
			t.Errorf("held %v: %v", held, err)
		}
	}
}

// pgxLike has the methods of pgx.Tx that [fence.Pgx] needs, with types of its own.
type pgxLike struct{ first []any }

type tag struct{}

func (tag) RowsAffected() int64 { return 1 }

func (p *pgxLike) Exec(_ context.Context, _ string, args ...any) (tag, error) {
	p.first = append(p.first, args[0])
	return tag{}, nil
}

func (p *pgxLike) QueryRow(context.Context, string, ...any) *sql.Row { return nil }
