package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A client removes the znodes of names that were used once, long before the server looks
// for them. Znodes that other programs created stay, and so do those of held locks. The
// removals go in groups, so that they keep up with the goroutines that use new names.
// ZKLOCK_NAMES sets the number of names, instead of 5,000.
func TestIdleContainersAreRemoved(t *testing.T) {
	count := long.Count(t, "ZKLOCK_NAMES", 5000, 5000)
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
		defer ensemble.Close()
		var removals atomic.Int64
		c, err := zklock.OpenConnector(ensemble.Connector(), zklock.WithHooks(zklock.Hooks{
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "reap" {
					removals.Add(1)
				}
				return ctx, func(error) {}
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		others, err := ensemble.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close(t.Context())
		kept, err := c.Mutex("kept").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := others.Create(t.Context(), "/zklock/theirs", []byte("zklock"), driver.Container, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names(count), "theirs") {
			l, err := c.Mutex(name).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		children := func() []string {
			list, _, err := others.Children(t.Context(), "/zklock")
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if n := len(children()); n != count+2 {
			t.Fatalf("%d names right after use, want %d", n, count+2)
		}
		idle := time.NewTimer(20 * time.Second)
		<-idle.C
		if left := strings.Join(children(), " "); left != "kept theirs" && left != "theirs kept" {
			t.Fatalf("left after 20s: %.200s; want kept and theirs", left)
		}
		if n := removals.Load(); n > int64(count/20) {
			t.Errorf("%d requests removed %d names, want at most one request for 20 names", n, count)
		}
		time.Sleep(2 * time.Minute) // by then the client has forgotten the name of others
		if left := strings.Join(children(), " "); left != "kept theirs" && left != "theirs kept" {
			t.Fatalf("left after two minutes more: %.200s; want kept and theirs", left)
		}
		if !kept.Valid() {
			t.Fatal("the lock that was held meanwhile is not valid")
		}
		_ = kept.Release(t.Context())
		// A name whose znode was removed can be used again.
		l, err := c.Mutex("name-7").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Release(t.Context())
	})
}

// Another client holds some of the names that are to be removed. The server refuses
// those removals, and no other request fails with them. All removals together take no
// more requests than they would one by one.
func TestRefusedRemovalFailsNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond)) // so that writes pile up and go in groups
		var reaped, refused atomic.Int64
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			return ctx, func(err error) {
				if ev.Kind == "reap" {
					reaped.Add(1)
				}
				if err == nil {
					return
				}
				if refused.Add(1); ev.Kind != "reap" || !errors.Is(err, driver.ErrBadVersion) && !errors.Is(err, driver.ErrNotEmpty) {
					t.Errorf("%s of %d failed: %v", ev.Kind, ev.Group, err)
				}
			}
		}}
		a, b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil)
		for i, name := range names(300) {
			mustRelease(t, mustLock(t)(a.Mutex(name).Acquire(t.Context())))
			if i%3 == 0 {
				l := mustLock(t)(b.Mutex(name).Acquire(t.Context()))
				defer func() { _ = l.Release(context.Background()) }()
			}
		}
		busy := time.Now().Add(20 * time.Second)
		var users sync.WaitGroup
		for i := range 10 {
			users.Go(func() {
				m := a.Mutex(fmt.Sprint("busy-", i))
				for time.Now().Before(busy) {
					l, err := m.Acquire(t.Context())
					if err == nil {
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		users.Wait()
		if n := refused.Load(); n != 100 || reaped.Load() > 300 {
			t.Errorf("300 removals took %d requests, of which %d failed; want at most 300, of which 100 fail", reaped.Load(), n)
		}
		others, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close(t.Context())
		left, _, err := others.Children(t.Context(), "/zklock")
		if err != nil || len(left) != 110 {
			t.Errorf("%d names are left (error %v), want the 100 that another client holds, and the 10 in use", len(left), err)
		}
	})
}
