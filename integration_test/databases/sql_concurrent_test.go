package databases

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// ledger has the accepted tokens, in the order the database let their transactions in.
type ledger struct {
	mu     sync.Mutex
	inside int     // transactions that SQL has let in and that have not ended
	order  []int64 // the tokens that are committed
	most   int     // the greatest number of transactions inside
}

func (l *ledger) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside++
	l.most = max(l.most, l.inside)
}

// leave is called right before a commit: from then on, other transactions may enter.
func (l *ledger) leave(zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	l.order = append(l.order, zxid)
}

// write writes once under a token, as often as the database asks to try again. It reports
// whether the token was accepted.
func (l *ledger) write(ctx context.Context, d database, db *sql.DB, zxid int64) (bool, error) {
	for {
		err := func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := d.dialect.CheckSequencer(ctx, tx, "r", writer(zxid)); err != nil {
				return err
			}
			l.enter()
			_, err = tx.ExecContext(ctx, "SELECT 1") // let others in, if they can
			l.leave(zxid)
			return errors.Join(err, tx.Commit())
		}()
		if err == nil || !d.again(err) {
			return err == nil, err
		}
	}
}

// TestSQLOrdersConcurrentWriters: many writers write at the same time, with tokens in
// random order. They enter one after the other, with rising tokens, and the greatest
// token is the one that is recorded.
func TestSQLOrdersConcurrentWriters(t *testing.T) {
	const writers, rounds = 16, 10
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		db.SetMaxOpenConns(writers)
		refusals := 0
		for round := range rounds {
			if _, err := db.ExecContext(within(t), "DELETE FROM zklock_fence"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var l ledger
			var wg sync.WaitGroup
			start := make(chan struct{})
			accepted, errs := make([]bool, writers), make([]error, writers)
			for i, p := range rand.New(rand.NewPCG(uint64(round), 0)).Perm(writers) {
				wg.Go(func() {
					<-start
					accepted[i], errs[i] = l.write(ctx, d, db, int64(p+1))
				})
			}
			close(start)
			wg.Wait()
			committed := 0
			for i, err := range errs {
				switch {
				case accepted[i]:
					committed++
				case !errors.Is(err, fence.ErrStale):
					t.Errorf("%v, want acceptance or a refusal", err)
				default:
					refusals++
				}
			}
			if l.most != 1 {
				t.Errorf("%d transactions were inside at the same time", l.most)
			}
			if len(l.order) != committed {
				t.Errorf("%d transactions were let in, and %d committed", len(l.order), committed)
			}
			for i := 1; i < len(l.order); i++ {
				if l.order[i] <= l.order[i-1] {
					t.Errorf("the accepted tokens are %v, want them to rise", l.order)
				}
			}
			newest := zklock.Token{Zxid: writers}.String()
			if got := recorded(t, db); got != newest+" "+newest || l.order[len(l.order)-1] != writers {
				t.Errorf("recorded are %q, accepted were %v", got, l.order)
			}
			if t.Failed() {
				return
			}
		}
		if refusals == 0 {
			t.Error("no token was refused")
		}
	})
}

// TestSQLWaitsForAWriteUnderWay: while a newer holder's transaction is open, a late write
// gets no answer. It is refused if that transaction commits, and accepted if not.
func TestSQLWaitsForAWriteUnderWay(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		if d.waiting == "" {
			t.Skip("this database cannot list the transactions that wait; here a transaction waits when it begins")
		}
		for _, commit := range []bool{false, true} {
			newer, late := begin(t, db, nil), begin(t, db, nil)
			if err := d.dialect.CheckSequencer(within(t), newer, "r", writer(5)); err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			go func() { answer <- d.dialect.CheckSequencer(within(t), late, "r", writer(4)) }()
			untilWaiting(t, d, db, answer)
			if commit {
				if err := newer.Commit(); err != nil {
					t.Fatal(err)
				}
				refused(t, <-answer, writer(4), zklock.Token{Zxid: 5})
			} else {
				if err := newer.Rollback(); err != nil {
					t.Fatal(err)
				}
				if err := <-answer; err != nil {
					t.Errorf("after the newer write was rolled back: %v", err)
				}
			}
			if err := late.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// untilWaiting waits until a transaction waits for a lock.
func untilWaiting(t *testing.T, d database, db *sql.DB, answer <-chan error) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	// InnoDB brings its answer up to date only if the last question was asked 100 ms ago.
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting int
		if err := db.QueryRowContext(within(t), d.waiting).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
		select {
		case <-tick.C:
		case err := <-answer:
			t.Fatalf("SQL returned %v while another transaction is open that has recorded a token", err)
		case <-limit.C:
			t.Fatal("no transaction waits")
		}
	}
}

// TestSQLPassesDeadlocksOn: two transactions record tokens for two resources in opposite
// order. One of them fails with the database's error, which is not a refusal.
func TestSQLPassesDeadlocksOn(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		if d.waiting == "" {
			t.Skip("this database has one writer at a time, so it has no deadlocks")
		}
		for _, name := range []string{"a", "b"} {
			if err := record(t, db, d.dialect, seq(name, zklock.Exclusive, 1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		txs := map[string]*sql.Tx{"a": begin(t, db, nil), "b": begin(t, db, nil)}
		for name, tx := range txs {
			if err := d.dialect.CheckSequencer(within(t), tx, name, writer(2)); err != nil {
				t.Fatal(err)
			}
		}
		answers := make(chan error, 2)
		for name, tx := range txs {
			other := map[string]string{"a": "b", "b": "a"}[name]
			go func() {
				err := d.dialect.CheckSequencer(within(t), tx, other, writer(3))
				_ = tx.Rollback() // so that the other one can go on
				answers <- err
			}()
		}
		victims := 0
		for range txs {
			switch err := <-answers; {
			case err == nil:
			case d.again(err) && !errors.Is(err, fence.ErrStale):
				victims++
			default:
				t.Errorf("%v, want the database's error about a deadlock", err)
			}
		}
		if victims != 1 {
			t.Errorf("%d transactions failed, want 1", victims)
		}
	})
}

// TestSQLInASnapshot: a transaction with a snapshot that is older than a newer holder's
// write does not get past it.
func TestSQLInASnapshot(t *testing.T) {
	everywhere(t, func(t *testing.T, d database, db *sql.DB) {
		if d.dialect == fence.SQLite {
			t.Skip("TestSQLPassesBusyOn is for this database")
		}
		if err := record(t, db, d.dialect, writer(1)); err != nil {
			t.Fatal(err)
		}
		for _, zxid := range []int64{3, 7} { // stale, and not stale
			tx := begin(t, db, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			var n int
			if err := tx.QueryRowContext(within(t), "SELECT count(*) FROM zklock_fence").Scan(&n); err != nil || n != 1 {
				t.Fatalf("%d rows, %v", n, err)
			}
			if err := record(t, db, d.dialect, writer(5)); err != nil {
				t.Fatal(err)
			}
			err := d.dialect.CheckSequencer(within(t), tx, "r", writer(zxid))
			switch {
			case d.dialect == fence.PostgreSQL:
				if !d.again(err) || errors.Is(err, fence.ErrStale) {
					t.Errorf("token %d: %v, want a serialization failure", zxid, err)
				}
			case zxid < 5: // InnoDB locks and compares the latest version
				refused(t, err, writer(zxid), zklock.Token{Zxid: 5})
			case err != nil:
				t.Errorf("token %d: %v", zxid, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSQLPassesBusyOn: SQLite does not let a transaction write that has read before
// another one wrote.
func TestSQLPassesBusyOn(t *testing.T) {
	d := databases[0]
	_, source := d.source(t)
	deferred := d
	deferred.source = func(*testing.T) (string, string) {
		return "sqlite", strings.Replace(source, "_txlock=immediate&", "", 1)
	}
	db := deferred.open(t)
	if err := record(t, db, d.dialect, writer(1)); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, nil)
	var n int
	if err := tx.QueryRowContext(within(t), "SELECT count(*) FROM zklock_fence").Scan(&n); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
	if err := record(t, db, d.dialect, writer(5)); err != nil {
		t.Fatal(err)
	}
	for _, zxid := range []int64{3, 7} {
		if err := d.dialect.CheckSequencer(within(t), tx, "r", writer(zxid)); !busy(err) || errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v, want an error that says that the database is locked", zxid, err)
		}
	}
}
