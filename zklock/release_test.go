package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A release that the session's end cuts short is not confirmed, however far it had come:
// the node stays until the ensemble ends the session. Do does not fail because of it.
func TestReleaseCutShortByTheSessionsEndIsPending(t *testing.T) {
	multis, deletes := faultdriver.Multi, faultdriver.Delete
	for _, of := range []struct {
		what   string
		faults faultdriver.Injector
		all    bool
		close  bool
		want   error // in the text
	}{
		{"the request is lost", faultdriver.On(multis, faultdriver.Hang()), false, false, zklock.ErrSessionExpired},
		{"the reply is lost", faultdriver.On(multis, faultdriver.HangReply()), false, false, zklock.ErrSessionExpired},
		{"the second request is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), false, false, zklock.ErrSessionExpired},
		{"two names", faultdriver.On(multis, faultdriver.Hang()), true, false, zklock.ErrSessionExpired},
		{"the second request of two names is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), true, false, zklock.ErrSessionExpired},
		{"one of two names was lost, the request for the other is", faultdriver.Any(faultdriver.On(multis, faultdriver.Fail(driver.ErrNoNode)), faultdriver.On(deletes, faultdriver.Hang())), true, false,
			zklock.ErrSessionExpired},
		{"Close", faultdriver.On(multis, faultdriver.Hang()), false, true, zklock.ErrClosed},
		{"Close, the second request is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), false, true, zklock.ErrClosed},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				faults := faultdriver.NewToggle(about(of.faults))
				faults.Off()
				var hooked error
				hooks := zklock.Hooks{Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
					return ctx, func(r zklock.ReleaseResult) { hooked = r.Err }
				}}
				c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithHooks(hooks))
				var a zklock.Acquirer = c.Mutex("x")
				if of.all {
					a = zklock.All(c.Mutex("x"), c.Mutex("y"))
				}
				end := func() {
					synctest.Wait()
					if of.close {
						go func() { _ = c.Close() }()
					} else {
						e.ExpireAll()
					}
				}
				l := mustLock(t)(a.Acquire(t.Context()))
				faults.On()
				done := make(chan error, 1)
				go func() { done <- l.Release(t.Context()) }()
				end()
				err := <-done
				faults.Off()
				lost := strings.HasPrefix(of.what, "one of two names was lost")
				for _, err := range []error{err, hooked} {
					if errors.Is(err, zklock.ErrReleasePending) == lost || errors.Is(err, zklock.ErrNodeDeleted) != lost || errors.Is(err, of.want) {
						t.Errorf("Release or its hook: %v; want a loss: %t, and %v in the text only", err, lost, of.want)
					}
					if text := err.Error(); !strings.Contains(text, of.want.Error()) || !strings.Contains(text, zklock.ErrReleasePending.Error()) {
						t.Errorf("Release or its hook: %v; want a pending release and %v in the text", err, of.want)
					}
				}
				if l.Err() != zklock.ErrReleased {
					t.Errorf("Err: %v, want ErrReleased", l.Err())
				}
				if of.close {
					return
				}

				go func() {
					done <- zklock.Do(t.Context(), a, func(context.Context, *zklock.Lock) error { faults.On(); return nil })
				}()
				end()
				err = <-done
				if lost != errors.Is(err, zklock.ErrLost) || !lost && err != nil {
					t.Errorf("Do: %v; want ErrLost: %v", err, lost)
				}
				faults.Off()
			})
		})
	}
}

// stopper is a context that, once armed, stops the first goroutine that calls Done. That
// is the goroutine that ends a context derived from it.
type stopper struct {
	context.Context
	armed   atomic.Bool
	reached chan struct{}
	goOn    chan struct{}
}

func (h *stopper) Done() <-chan struct{} {
	if h.armed.CompareAndSwap(true, false) {
		close(h.reached)
		<-h.goOn
	}
	return h.Context.Done()
}

// A lock is lost when its handle is marked as released and no request was sent yet. The
// release returns what happened: the end of the session, or the deletion of the node.
func TestReleaseOvertakenByALoss(t *testing.T) {
	for _, of := range []struct {
		what string
		lose func(e *memdriver.Ensemble)
		want []error
	}{
		{"expired", func(e *memdriver.Ensemble) { e.ExpireAll() }, []error{zklock.ErrReleasePending}},
		{"deleted", func(e *memdriver.Ensemble) { e.Break("/zklock/x") }, []error{zklock.ErrLost, zklock.ErrNodeDeleted}},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c := connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				time.Sleep(5 * time.Second) // until its node is watched
				parent := &stopper{Context: t.Context(), reached: make(chan struct{}), goOn: make(chan struct{})}
				_, cancel := l.Context(parent)
				defer cancel()
				parent.armed.Store(true)
				done := make(chan error, 1)
				go func() { done <- l.Release(t.Context()) }()
				<-parent.reached
				of.lose(e)
				synctest.Wait()
				close(parent.goOn)
				err := <-done
				for _, want := range of.want {
					if !errors.Is(err, want) {
						t.Errorf("Release: %v, want %v", err, want)
					}
				}
				if l.Err() != zklock.ErrReleased || c.Stats().Lost != 0 {
					t.Errorf("Err: %v; %d handles were lost, want 0: the handle was released before the loss", l.Err(), c.Stats().Lost)
				}
			})
		})
	}
}

// A release after the end of the session returns the loss, also while
// the session's other locks are still being ended.
func TestReleaseAfterTheEndIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		const many = 20
		var locks []*zklock.Lock
		for i := range many {
			locks = append(locks, mustLock(t)(c.Mutex(fmt.Sprint(i)).Acquire(t.Context())))
		}
		parent := &stopper{Context: t.Context(), reached: make(chan struct{}), goOn: make(chan struct{})}
		for _, l := range locks {
			_, cancel := l.Context(parent)
			defer cancel()
		}
		parent.armed.Store(true) // the end of the first lock is stopped, and the others wait for it
		killAll(e)
		<-parent.reached
		released := make(chan error, many)
		for _, l := range locks {
			go func() { released <- l.Release(t.Context()) }()
		}
		synctest.Wait()
		close(parent.goOn)
		for range many {
			if err := <-released; !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v, want ErrLost without ErrReleasePending", err)
			}
		}
	})
}
