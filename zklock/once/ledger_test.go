package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// A ledger is one persistent znode below the root, for which no lock has a name, in any dialect.
func TestLedgersAndLocksDoNotMeet(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(dialect, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, s := connect(t, e.Connector(), "dialect", dialect), plain(t, e)
				do(t, c, "reports/a b", "1", nil, true)
				const path = "/zklock/~reports%2Fa%20b"
				n, err := s.Get(t.Context(), path)
				if err != nil || n.Stat.EphemeralOwner != 0 || !strings.Contains(string(n.Data), `"slot":"1"`) {
					t.Fatalf("the ledger: %+v, %v\n%s", n, err, e.Dump())
				}
				for _, name := range []string{"~reports%2Fa%20b", "~reports/a b", "~x", "~"} {
					l, err := c.Mutex(name).TryAcquire(t.Context())
					switch {
					case dialect == "zklock" && err == nil:
						if path := c.Mutex(name).Path(); strings.Contains(path, "~") {
							t.Errorf("the lock %q has the znode %s", name, path)
						}
						if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
						do(t, c, name, "1", nil, true) // the ledger of such a name is another one
					case dialect == "zklock", !errors.Is(err, zklock.ErrInvalidName):
						t.Errorf("acquire %q: %v", name, err)
					}
				}
				lock, err := c.Mutex("reports/~x").Acquire(t.Context()) // only at the beginning of a name
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Release(t.Context())
				var names []string
				for l, err := range c.Locks(t.Context(), "") {
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, l.Name)
				}
				if fmt.Sprint(names) != "[reports/~x]" {
					t.Errorf("Locks returned %q", names)
				}
				time.Sleep(10 * time.Minute) // servers and the client remove the znodes of idle names
				do(t, c, "reports/a b", "1", nil, false)
			})
		})
	}
}

// Slots lists the ledgers of a prefix in the order of their names, in every dialect. An error about one name does
// not hide the others.
func TestSlots(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(dialect, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, s := connect(t, e.Connector(), "dialect", dialect), plain(t, e)
				slots := func(prefix string) (found []string) {
					for s, err := range c.Slots(t.Context(), prefix) {
						var of *zklock.Error
						switch {
						case err == nil && (s.Token.IsZero() || time.Since(s.Recorded) > time.Hour):
							t.Errorf("%+v has no token, or no time", s)
						case err == nil:
							found = append(found, s.Name+" "+s.Slot)
						case errors.Is(err, zklock.ErrConflict) && errors.As(err, &of):
							found = append(found, of.Name+" fails")
						default:
							t.Error(err)
						}
					}
					return found
				}
				if got := slots(""); len(got) > 0 {
					t.Errorf("without a root: %q", got)
				}
				do(t, c, "reports/b", "1", nil, true)
				do(t, c, "reports/a b", "7", nil, true)
				do(t, c, "other", "x", nil, true)
				do(t, c, "reports/b", "2", nil, true)
				do(t, c, "reports/c", "1", nil, true)
				if _, err := s.Set(t.Context(), "/zklock/~reports%2Fc", []byte("mine"), driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(slots("reports/")); got != "[reports/a b 7 reports/b 2 reports/c fails]" {
					t.Errorf("Slots returned %s", got)
				}
				if got := fmt.Sprint(slots("")); got != "[other x reports/a b 7 reports/b 2 reports/c fails]" {
					t.Errorf("Slots of all names returned %s", got)
				}
			})
		})
	}
}

// Forget makes slots run again. It waits for a job that is running.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector()), connect(t, e.Connector())
		if err := once.Forget(t.Context(), a, "x"); err != nil {
			t.Errorf("without a ledger: %v", err)
		}
		do(t, a, "x", "2", nil, true)
		do(t, a, "y", "2", nil, true)
		if err := once.Forget(t.Context(), b, "x"); err != nil {
			t.Error(err)
		}
		if n := strings.Count(e.Dump(), "~"); n != 1 {
			t.Errorf("%d ledgers, want that of y:\n%s", n, e.Dump())
		}
		do(t, a, "x", "1", nil, true)
		do(t, a, "y", "1", nil, false)

		working, worked, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_, err := once.Do(t.Context(), a, "x", "3", func(context.Context) error {
				defer close(worked)
				close(working)
				time.Sleep(time.Hour)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		<-working
		if err := once.Forget(t.Context(), b, "x"); err != nil {
			t.Error(err)
		}
		select {
		case <-worked:
		default:
			t.Error("Forget did not wait for the job")
		}
		<-done
		do(t, a, "x", "3", nil, true)
	})
}

// Other programs' data is not written, and a ledger that an operator removes or changes while a
// job runs is not put back to an older slot.
func TestOtherWritersOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector()), plain(t, e)
		do(t, c, "x", "1", nil, true)
		for _, data := range []string{"theirs", "", `zklock ledger {"slot":7}`} {
			if _, err := s.Set(t.Context(), "/zklock/~x", []byte(data), driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
			ran, err := once.Do(t.Context(), c, "x", "2", func(context.Context) error { return nil })
			if ran || !errors.Is(err, zklock.ErrConflict) || !strings.Contains(err.Error(), "/zklock/~x") {
				t.Errorf("with the data %q: %v, %v", data, ran, err)
			}
			if err := once.Forget(t.Context(), c, "x"); !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("Forget with the data %q: %v", data, err)
			}
			if n, err := s.Get(t.Context(), "/zklock/~x"); err != nil || string(n.Data) != data {
				t.Errorf("the data is %q, %v; want %q", n.Data, err, data)
			}
		}
		during := func(slot string, change func() error) {
			t.Helper()
			ran, err := once.Do(t.Context(), c, "y", slot, func(context.Context) error { return change() })
			if !ran || err != nil {
				t.Errorf("slot %q: %v, %v", slot, ran, err)
			}
		}
		do(t, c, "y", "1", nil, true)
		during("2", func() error { return s.Delete(t.Context(), "/zklock/~y", driver.AnyVersion) })
		do(t, c, "y", "2", nil, false)
		during("3", func() error {
			_, err := s.Set(t.Context(), "/zklock/~y", []byte(`zklock ledger {"slot":"5"}`), driver.AnyVersion)
			return err
		})
		do(t, c, "y", "4", nil, false)
		do(t, c, "y", "5", nil, false)
		do(t, c, "y", "6", nil, true)
	})
}

// A client that may not create the ledger fails before its job runs.
func TestWithoutTheRightToCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		operator, err := e.As("operator", driver.NewSecret("s3cret")).Connect(t.Context(), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer operator.Close(t.Context())
		closed := append(driver.CreatorACL(driver.PermAll), driver.OpenACL(driver.PermRead)...)
		if _, err := operator.Create(t.Context(), "/closed", nil, driver.Persistent, closed); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Create(t.Context(), "/closed/reports", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), Root: "/closed", Dialect: "kazoo"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := zklock.Do(t.Context(), c.Mutex("reports/x"), func(context.Context, *zklock.Lock) error { return nil }); err != nil {
			t.Errorf("locks below a znode that an operator has made: %v", err)
		}
		ran, err := once.Do(t.Context(), c, "reports/x", "1", func(context.Context) error { return nil })
		if ran || !errors.Is(err, zklock.ErrNoAuth) {
			t.Errorf("%v, %v; want ErrNoAuth", ran, err)
		}
	})
}

// With acl=creator the ledger is open to its creator only.
func TestLedgerHasTheClientsAccessList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.As("app", driver.NewSecret("s3cret")), "acl", "creator")
		do(t, c, "x", "1", nil, true)
		do(t, c, "x", "1", nil, false)
		if _, err := plain(t, e).Get(t.Context(), "/zklock/~x"); !errors.Is(err, driver.ErrNoAuth) {
			t.Errorf("another identity reads the ledger: %v", err)
		}
	})
}
