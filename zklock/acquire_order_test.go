package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A caller leaves at the end of WithWait. It would have stayed for its work, so those that wait for longer are not taken
// to be about to leave: the lock goes to the first of them.
func TestEndOfWithWaitChangesNoOrder(t *testing.T) {
	for _, opts := range [][]zklock.AcquireOption{nil, {zklock.WithoutHandover()}} {
		synctest.Test(t, func(t *testing.T) {
			m := connect(t, memdriver.New().Connector(), nil).Mutex("m")
			held := mustLock(t)(m.Acquire(t.Context(), opts...))
			next := acquiring(t, m, t.Context(), opts...)
			synctest.Wait()
			first := acquiring(t, m, t.Context(), opts...)
			time.AfterFunc(950*time.Millisecond, func() { mustRelease(t, held) })
			if _, err := m.Acquire(t.Context(), append(opts, zklock.WithWait(time.Second))...); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Fatal(err)
			}
			held = soon(t, "the next caller", next)
			second := acquiring(t, m, t.Context(), opts...)
			time.Sleep(100 * time.Millisecond) // it works for much less than the other waited
			mustRelease(t, held)
			got := soon(t, "the caller that came first", first)
			none(t, "the caller that came later", second)
			mustRelease(t, got)
			mustRelease(t, soon(t, "the caller that came later", second))
		})
	}
}
