package zklock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// An All that fails because of what the context or its caller holds says which of its names that is.
func TestAllNamesWhatIsHeld(t *testing.T) {
	c, _ := zklocktest.New(t)
	own, err := c.Mutex("a/1").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Release(t.Context())
	carries, cancel := own.Context(t.Context())
	defer cancel()
	called := func(names ...string) (locks []zklock.CallerLock) {
		for _, name := range names {
			locks = append(locks, zklock.CallerLock{Name: name, Mode: zklock.Exclusive, Token: own.Token()})
		}
		return locks
	}
	all := zklock.All(c.Mutex("a/3"), c.Mutex("a/2"), c.Mutex("a/1"))
	for want, acquire := range map[string]func() error{
		`a caller of this request holds "a/2" until`: func() error {
			_, err := all.Acquire(zklock.ContextWithCallerLocks(t.Context(), called("a/2", "b")...))
			return err
		},
		`a caller of this request holds "a/1" and "a/3" until`: func() error {
			_, err := all.TryAcquire(zklock.ContextWithCallerLocks(t.Context(), called("a/3", "a/1", "a/3")...))
			return err
		},
		`holds "a/2" until`: func() error { // a reader of the caller's keeps a writer out, and no reader
			reader := zklock.CallerLock{Name: "a/2", Mode: zklock.Shared, Token: own.Token()}
			if l, err := zklock.All(c.RWMutex("a/2").Reader(), c.Mutex("a/3")).TryAcquire(zklock.ContextWithCallerLocks(t.Context(), reader)); err != nil {
				return err
			} else if err := l.Release(t.Context()); err != nil {
				return err
			}
			_, err := zklock.All(c.RWMutex("a/2").Writer(), c.Mutex("a/3")).Acquire(zklock.ContextWithCallerLocks(t.Context(), reader))
			return err
		},
		"a caller of this request holds this lock until": func() error {
			_, err := c.Mutex("a/2").Acquire(zklock.ContextWithCallerLocks(t.Context(), called("a/2")...))
			return err
		},
		`the context already holds "a/1" but not all names of this call`: func() error {
			_, err := all.Acquire(carries)
			return err
		},
	} {
		if err := acquire(); !errors.Is(err, zklock.ErrDeadlock) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ErrDeadlock with %q", err, want)
		}
	}
}
