package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Servers before 3.6 give negative sequence numbers when their counter has overflowed.
// A contender with such a number is behind all others: a try goes ahead of it like any
// other acquisition.
func TestTryGoesAheadOfANegativeNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		if _, err := s.Create(t.Context(), "/zklock/x/a-__WRIT__-000000005", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		mustRelease(t, mustLock(t)(c.Mutex("x").TryAcquire(t.Context())))
		mustRelease(t, mustLock(t)(c.Semaphore("x", 1).TryAcquire(t.Context())))
	})
}

// A child whose name does not end in a sequence number is not a contender for a client
// of any dialect: it never gets a turn, and no client waits for it.
func TestChildrenWithoutASequenceAreNoContenders(t *testing.T) {
	const id = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
	for _, child := range []string{
		"_c_" + id + "-__WRIT__", "_c_" + id + "-__WRIT__notes", "__READ__42", "_c_" + id + "-__PERM2__000000001", "x__WRIT__00000000001",
		"_c_" + id + "-lock-", "lock-1", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__1",
	} {
		for _, dialect := range []string{"zklock", "curator", "kazoo"} {
			t.Run(dialect+" "+child, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					s := plain(t, e)
					c := connect(t, e.Connector(), map[string]string{"dialect": dialect})
					mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
					if _, err := s.Create(t.Context(), "/zklock/x/"+child, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
						t.Fatal(err)
					}
					kinds := []zklock.Acquirer{c.Mutex("x")}
					if dialect != "curator" {
						kinds = append(kinds, c.RWMutex("x").Reader())
					}
					if dialect == "zklock" {
						kinds = append(kinds, c.Semaphore("x", 3))
					}
					for _, a := range kinds {
						l := mustLock(t)(a.Acquire(t.Context()))
						found, err := c.Contenders(t.Context(), "x")
						if err != nil || len(found) != 1 || !found[0].Held || found[0].Foreign {
							t.Errorf("contenders while a %T holds: %+v, error %v; want only the holder", a, found, err)
						}
						mustRelease(t, l)
						l, err = a.TryAcquire(t.Context())
						if err != nil {
							t.Errorf("TryAcquire of a %T: %v", a, err)
							continue
						}
						mustRelease(t, l)
					}
					if err := c.Break(t.Context(), "x", child); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("Break of a child that is not a contender: %v, want ErrConflict", err)
					}
				})
			})
		}
	}
}
