package migratelock_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// fake is a database driver that records its calls.
type fake struct {
	database.Driver
	calls []string
	fails map[string]error // by call
}

func (f *fake) call(name string) error {
	f.calls = append(f.calls, name)
	return f.fails[name]
}

func (f *fake) Open(string) (database.Driver, error) { return new(fake), f.call("open") }
func (f *fake) Close() error                         { return f.call("close") }
func (f *fake) Lock() error                          { return f.call("lock") }
func (f *fake) Unlock() error                        { return f.call("unlock") }
func (f *fake) Run(io.Reader) error                  { return f.call("run") }
func (f *fake) SetVersion(int, bool) error           { return f.call("set") }
func (f *fake) Drop() error                          { return f.call("drop") }
func (f *fake) Version() (int, bool, error)          { return 1, false, f.call("version") }

// A driver holds both locks, the database's inside, and excludes other drivers.
func TestDriverHoldsBothLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		inner := new(fake)
		d := migratelock.Wrap(inner, c.Mutex(migrations))
		if err := d.Lock(); err != nil || !held(t, c) {
			t.Fatalf("Lock: %v", err)
		}
		began := time.Now()
		second := new(fake)
		if err := migratelock.Wrap(second, client(t, e).Mutex(migrations)).Lock(); !errors.Is(err, database.ErrLocked) || time.Since(began) != 10*time.Second {
			t.Errorf("Lock of another process: %v after %v, want database.ErrLocked after 10s", err, time.Since(began))
		}
		if len(second.calls) != 0 {
			t.Errorf("the driver that did not get the lock did %q in the database", second.calls)
		}
		if err := errors.Join(d.SetVersion(1, true), d.Run(strings.NewReader("")), d.SetVersion(1, false), d.Drop()); err != nil {
			t.Error(err)
		}
		if _, _, err := d.Version(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the driver that gave up has left the queue
		if err := d.Unlock(); err != nil || held(t, c) {
			t.Errorf("Unlock: %v", err)
		}
		if want := []string{"lock", "set", "run", "set", "drop", "version", "unlock"}; !slices.Equal(inner.calls, want) {
			t.Errorf("calls of the database %q, want %q", inner.calls, want)
		}
	})
}

// Without the database's lock, only ZooKeeper's is held.
func TestDriverWithoutDatabaseLock(t *testing.T) {
	c, _ := zklocktest.New(t)
	inner := new(fake)
	d := migratelock.Wrap(inner, c.Mutex(migrations), migratelock.WithoutDatabaseLock())
	if err := errors.Join(d.Lock(), d.Unlock()); err != nil || len(inner.calls) != 0 {
		t.Errorf("%v, calls of the database %q, want none", err, inner.calls)
	}
}

// If the database's lock fails, ZooKeeper's is given back; and both are unlocked whatever the
// database returns.
func TestDriverDatabaseFails(t *testing.T) {
	c, _ := zklocktest.New(t)
	broken := errors.New("broken")
	d := migratelock.Wrap(&fake{fails: map[string]error{"lock": broken}}, c.Mutex(migrations))
	if err := d.Lock(); !errors.Is(err, broken) || held(t, c) {
		t.Errorf("Lock: %v, want the database's error, and nothing held", err)
	}
	d = migratelock.Wrap(&fake{fails: map[string]error{"unlock": broken}}, c.Mutex(migrations))
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := d.Unlock(); !errors.Is(err, broken) || held(t, c) {
		t.Errorf("Unlock: %v, want the database's error, and nothing held", err)
	}
	if err := d.Unlock(); err == nil {
		t.Error("Unlock without Lock succeeded")
	}
}

// After a loss the driver changes nothing, and Unlock reports the loss.
func TestDriverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		inner := new(fake)
		d := migratelock.Wrap(inner, c.Mutex(migrations))
		if err := errors.Join(d.Lock(), d.SetVersion(1, true), d.Run(strings.NewReader(""))); err != nil {
			t.Fatal(err)
		}
		inner.calls = nil
		e.ExpireAll()
		time.Sleep(10 * time.Second) // of virtual time: the client learns of it
		if err := zklock.Do(t.Context(), client(t, e).Mutex(migrations), func(context.Context, *zklock.Lock) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"SetVersion": d.SetVersion(1, false), "Run": d.Run(strings.NewReader("")), "Drop": d.Drop()} {
			if !errors.Is(err, zklock.ErrLost) {
				t.Errorf("%s after the loss: %v, want ErrLost", what, err)
			}
		}
		if len(inner.calls) != 0 {
			t.Errorf("after the loss the driver did %q in the database", inner.calls)
		}
		if err := d.Lock(); err == nil {
			t.Error("a second Lock before Unlock succeeded")
		}
		if err := d.Unlock(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Unlock after the loss: %v, want ErrLost", err)
		}
		if err := errors.Join(d.Lock(), d.SetVersion(1, false), d.Unlock()); err != nil { // usable again
			t.Error(err)
		}
	})
}

// Close gives back the lock, and ends a Lock that waits.
func TestDriverClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		d := migratelock.Wrap(new(fake), c.Mutex(migrations))
		if err := d.Lock(); err != nil {
			t.Fatal(err)
		}
		waiting := migratelock.Wrap(new(fake), client(t, e).Mutex(migrations), migratelock.WithWait(time.Hour))
		locked := make(chan error, 1)
		go func() { locked <- waiting.Lock() }()
		synctest.Wait()
		if err := waiting.Close(); err != nil {
			t.Error(err)
		}
		if err := <-locked; err == nil || errors.Is(err, database.ErrLocked) {
			t.Errorf("the Lock of a driver that was closed: %v, want an error that says so", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the node of the Lock that waited is removed in the background
		if held(t, c) {
			t.Error("Close did not give the lock back")
		}
		if err := d.Lock(); err == nil || held(t, c) {
			t.Errorf("Lock after Close: %v, want an error, and nothing held", err)
		}
	})
}

// A driver is closed while it waits for the database's own lock. Its Lock then fails, even if the
// database grants the lock, and the driver changes nothing in the database.
func TestDriverClosedInTheDatabase(t *testing.T) {
	for what, got := range map[string]error{"granted": nil, "refused": errors.New("broken")} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := zklocktest.New(t)
				grant := make(chan error)
				inner := &slow{grant: grant}
				d := migratelock.Wrap(inner, c.Mutex(migrations))
				locked := make(chan error, 1)
				go func() { locked <- d.Lock() }()
				synctest.Wait()
				if !held(t, c) || len(locked) != 0 {
					t.Error("the driver does not wait with ZooKeeper's lock")
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if held(t, c) {
					t.Error("Close did not give the lock back")
				}
				grant <- got
				if err := <-locked; err == nil || !strings.Contains(err.Error(), "the driver was closed") || strings.Contains(err.Error(), "lock it first") {
					t.Errorf("Lock: %v, want an error that says that the driver was closed", err)
				}
				for what, err := range map[string]error{"Run": d.Run(strings.NewReader("")), "SetVersion": d.SetVersion(1, true), "Drop": d.Drop()} {
					if err == nil {
						t.Errorf("%s after Close succeeded", what)
					}
				}
				if want := []string{"close"}; !slices.Equal(inner.calls, want) {
					t.Errorf("calls of the database %q, want %q", inner.calls, want)
				}
			})
		})
	}
}

// slow is a database driver whose Lock waits.
type slow struct {
	fake
	grant <-chan error
}

func (s *slow) Lock() error { return <-s.grant }

// Open returns another driver with the same lock.
func TestDriverOpen(t *testing.T) {
	c, _ := zklocktest.New(t)
	d, err := migratelock.Wrap(new(fake), c.Mutex(migrations)).Open("fake://")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Lock(); err != nil || !held(t, c) {
		t.Errorf("Lock: %v", err)
	}
	if err := d.Close(); err != nil || held(t, c) {
		t.Errorf("Close: %v", err)
	}
	broken := errors.New("broken")
	if _, err := migratelock.Wrap(&fake{fails: map[string]error{"open": broken}}, c.Mutex(migrations)).Open("fake://"); !errors.Is(err, broken) {
		t.Errorf("Open: %v, want the driver's error", err)
	}
}
