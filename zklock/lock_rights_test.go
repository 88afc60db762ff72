package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The right to delete is taken away during a hold, and comes back. Release fails at once, and the client goes on
// with it, more and more rarely, until the node is gone.
func TestReleaseWithoutTheRightGoesOn(t *testing.T) {
	for name, release := range map[string]func(*testing.T, *zklock.Client, *zklock.Lock){
		"Release": func(t *testing.T, _ *zklock.Client, l *zklock.Lock) {
			if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleasePending) || !strings.Contains(err.Error(), "DELETE") && !strings.Contains(err.Error(), "not authorized") {
				t.Errorf("Release: %v", err)
			}
		},
		"a wait that ends": func(t *testing.T, c *zklock.Client, l *zklock.Lock) {
			// A second client waits, and gives up: its node stays without the right, too.
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("the second client: %v", err)
			}
			_ = l.Release(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				open, without := driver.OpenACL(driver.PermAll), driver.OpenACL(driver.PermAll&^driver.PermDelete)
				a, b, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
				rights := func(acl []driver.ACL) {
					t.Helper()
					if err := memcontrol.Of(e).SetACL("/zklock/x", acl); err != nil {
						t.Fatal(err)
					}
				}
				rights(without)
				release(t, b, l)
				time.Sleep(15 * time.Second)
				if nodes(e) == 0 {
					t.Fatal("the nodes are gone without the right to delete them")
				}
				synctest.Wait()
				before := memcontrol.Of(e).Ops().Deletes
				time.Sleep(10 * time.Minute)
				if n := memcontrol.Of(e).Ops().Deletes - before; n > 40 {
					t.Errorf("%d deletes in ten minutes without the right, want a few", n)
				}
				rights(open)
				ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
				defer cancel()
				if l, err := other.Mutex("x").Acquire(ctx); err != nil {
					t.Errorf("70s after the right came back: %v", err)
				} else {
					mustRelease(t, l)
				}
			})
		})
	}
}

// A right that comes back soon is used soon.
func TestReleaseWithoutTheRightFor15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		_ = memcontrol.Of(e).SetACL("/zklock/x", driver.OpenACL(driver.PermAll&^driver.PermDelete))
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleasePending) {
			t.Errorf("Release: %v", err)
		}
		time.Sleep(15 * time.Second)
		_ = memcontrol.Of(e).SetACL("/zklock/x", driver.OpenACL(driver.PermAll))
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if l, err := other.Mutex("x").Acquire(ctx); err != nil {
			t.Errorf("25s after the right came back: %v", err)
		} else {
			mustRelease(t, l)
		}
	})
}

// The ensemble refuses the heartbeats of a client that may not read the root any more, or whose root is gone. The
// error of the loss says so.
func TestLossByRefusedHeartbeatsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		_ = memcontrol.Of(e).SetACL("/zklock", nil)
		<-l.Done()
		if err := l.Err(); !errors.Is(err, zklock.ErrLeaseOver) || !strings.Contains(err.Error(), "READ on /zklock") || !strings.Contains(err.Error(), driver.ErrNoAuth.Error()) {
			t.Errorf("the loss is %v, want the refusal of the heartbeats in it", err)
		}
		if errors.Is(l.Err(), zklock.ErrNoAuth) {
			t.Errorf("the loss matches ErrNoAuth: %v", l.Err())
		}
	})
}
