package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The outcome of the transaction is unknown: it was applied, it was not, or it is applied later. It
// is not repeated. At the end no node and no container is left: the client has removed them, since
// the servers of this test do not look for empty containers.
func TestFreshNameWithAnUnknownOutcome(t *testing.T) {
	for _, fault := range []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.HangReply(), faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled),
		faultdriver.LateAfter(time.Millisecond), faultdriver.LateAfter(time.Second), faultdriver.LateAfter(15 * time.Second),
	} {
		for _, wait := range []time.Duration{500 * time.Microsecond, time.Hour} {
			t.Run(fmt.Sprint(fault, " wait ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
					faults := faultdriver.NewToggle(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, fault))))
					m := &makers{Connector: faultdriver.Wrap(e.Connector(), faults)}
					c, other := connect(t, m, nil), connect(t, e.Connector(), nil)
					for i := range 2 { // the first use of such a transaction, and a later one
						name := fmt.Sprint("n", i)
						faults.On()
						l, err := c.Mutex(name).Acquire(t.Context(), zklock.WithWait(wait))
						if err == nil {
							if err := l.Verify(t.Context()); err != nil {
								t.Errorf("Verify: %v", err)
							}
							if _, err := other.Mutex(name).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
								t.Errorf("a try of a name that is held: %v", err)
							}
							time.Sleep(2 * time.Second)
							mustRelease(t, l)
						} else if wait == time.Hour || !errors.Is(err, zklock.ErrNotAcquired) {
							t.Error(err)
						}
						next := mustLock(t)(other.Mutex(name).Acquire(t.Context(), zklock.WithWait(time.Minute)))
						if err == nil && next.Token().Compare(l.Token()) <= 0 {
							t.Errorf("token %v after %v", next.Token(), l.Token())
						}
						mustRelease(t, next)
						time.Sleep(time.Minute)
						if n := nodes(e); n != 0 {
							t.Errorf("left behind:\n%s", e.Dump())
						}
					}
					again := fault.String() == "not-sent" || strings.HasPrefix(fault.String(), "fail")
					if n := m.multis.Load(); n != 2 && !again {
						t.Errorf("%d transactions with a container for two names", n)
					}
				})
			})
		}
	}
}

// A transaction for a fresh name was given up as lost, and is applied when the znode exists.
// It is refused as a whole, so there is no twin of the holder's node.
func TestLateFreshNameIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		c := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.Late(gate))))), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		before := e.Dump()
		gate.Release()
		synctest.Wait()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes, want the holder's\nbefore:\n%s\nafter:\n%s", n, before, e.Dump())
		}
		mustRelease(t, l)
	})
}

// A transaction for a fresh name is applied when its caller has given up. The client removes
// the node at once, and the container when it is idle.
func TestFreshNameOfACallerThatGaveUp(t *testing.T) {
	for _, fault := range []faultdriver.Fault{faultdriver.DelayReply(time.Second), faultdriver.LoseReply()} {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
				faults := faultdriver.Any(
					about(faultdriver.Once(faultdriver.On(faultdriver.Multi, fault))),
					about(faultdriver.On(faultdriver.Children, faultdriver.Nth(1, faultdriver.DelayReply(time.Second)))))
				c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
				if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(100*time.Millisecond)); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("acquire: %v, want ErrNotAcquired", err)
				}
				time.Sleep(3 * time.Second)
				if n := nodes(e); n != 0 || !strings.Contains(e.Dump(), "x container") {
					t.Errorf("want the container without a node:\n%s", e.Dump())
				}
				time.Sleep(time.Minute)
				if strings.Contains(e.Dump(), "x container") {
					t.Errorf("left behind:\n%s", e.Dump())
				}
			})
		})
	}
}
