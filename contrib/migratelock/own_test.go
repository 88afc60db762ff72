package migratelock_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// turns is a database driver. Each call of its Lock waits for an answer of its own.
type turns struct {
	fake
	locks chan chan error
}

func (s *turns) Lock() error {
	answer := make(chan error)
	s.locks <- answer
	return <-answer
}

// A call of Lock waits for the database's own lock. At that time others call Unlock, which ends its
// hold of ZooKeeper's lock, and Lock, which makes a new hold. The first Lock then fails, and does
// not give back the new hold.
func TestLockKeepsToItsOwnHold(t *testing.T) {
	broken := errors.New("broken")
	for what, answer := range map[string]error{"granted": nil, "refused": broken} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := zklocktest.New(t)
				inner := &turns{locks: make(chan chan error, 2)}
				d := migratelock.Wrap(inner, c.Mutex(migrations))
				lock := func() (locked, database chan error) {
					locked = make(chan error, 1)
					go func() { locked <- d.Lock() }()
					return locked, <-inner.locks
				}
				first, waits := lock()
				if err := d.Unlock(); err != nil || held(t, c) {
					t.Errorf("Unlock during Lock: %v", err)
				}
				second, next := lock()
				waits <- answer
				if err := <-first; err == nil || answer != nil && !errors.Is(err, answer) {
					t.Errorf("Lock without its hold: %v, want an error", err)
				}
				if !held(t, c) {
					t.Error("the first Lock gave back the hold of the second")
				}
				next <- nil
				if err := <-second; err != nil {
					t.Errorf("the second Lock: %v", err)
				}
				if err := d.Run(strings.NewReader("")); err != nil {
					t.Errorf("Run under the second Lock: %v", err)
				}
				if err := d.Unlock(); err != nil || held(t, c) {
					t.Errorf("Unlock: %v", err)
				}
				want := []string{"unlock", "run", "unlock"}
				if answer == nil { // what the first Lock got is given back
					want = []string{"unlock", "unlock", "run", "unlock"}
				}
				if !slices.Equal(inner.calls, want) {
					t.Errorf("calls of the database %q, want %q", inner.calls, want)
				}
			})
		})
	}
}

// long is a database driver whose Run goes on until the test says so, also after Close.
type long struct {
	fake
	finish, closed chan struct{}
}

func (l *long) Run(io.Reader) error { <-l.finish; return nil }

func (l *long) Close() error {
	defer close(l.closed)
	return l.fake.Close()
}

// Close does not give the lock back while a statement may still run.
func TestCloseWaitsForRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := zklocktest.New(t)
		inner := &long{finish: make(chan struct{}), closed: make(chan struct{})}
		d := migratelock.Wrap(inner, c.Mutex(migrations))
		if err := d.Lock(); err != nil {
			t.Fatal(err)
		}
		ran, closed := make(chan error, 1), make(chan error, 1)
		go func() { ran <- d.Run(strings.NewReader("")) }()
		synctest.Wait()
		go func() { closed <- d.Close() }()
		<-inner.closed
		synctest.Wait()
		if len(closed) != 0 || !held(t, c) {
			t.Error("Close gave the lock back while a migration was running")
		}
		if want := []string{"lock", "close"}; !slices.Equal(inner.calls, want) {
			t.Errorf("calls of the database %q, want %q: its Close may end the statement", inner.calls, want)
		}
		if err := d.Drop(); err == nil {
			t.Error("Drop during Close succeeded")
		}
		close(inner.finish)
		if err := errors.Join(<-ran, <-closed); err != nil || held(t, c) {
			t.Errorf("Run and Close: %v", err)
		}
	})
}
