package zklock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// shown returns the labels of a name's contenders, joined by commas.
func shown(t *testing.T, c *zklock.Client, name string) string {
	t.Helper()
	found, err := c.Contenders(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, f := range found {
		labels = append(labels, f.Label)
	}
	return strings.Join(labels, ",")
}

// SetLabel costs a read and a write for each name, and changes nothing else.
func TestSetLabelIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
		before, _ := c.Contenders(t.Context(), "x")
		time.Sleep(time.Minute)
		wantCost(t, "SetLabel", cost(e, func() {
			if err := l.SetLabel(t.Context(), "second"); err != nil {
				t.Error(err)
			}
		}), memcontrol.Ops{Gets: 1, Sets: 1, Events: 1, Watches: 1}) // the holder watches its node, and reads it again
		wantCost(t, "the same label again", cost(e, func() {
			if err := l.SetLabel(t.Context(), "second"); err != nil {
				t.Error(err)
			}
		}), memcontrol.Ops{Gets: 1})
		after, _ := c.Contenders(t.Context(), "x")
		want := before[0]
		want.Label = "second"
		if after[0] != want {
			t.Errorf("the contender is %+v, want %+v", after[0], want)
		}
		if err := l.SetLabel(t.Context(), strings.Repeat("é", 200)); err != nil {
			t.Error(err)
		}
		if got := shown(t, c, "x"); got != strings.Repeat("é", 128) {
			t.Errorf("a long label is shown as %q", got)
		}
		mustRelease(t, l)
		all := mustLock(t)(zklock.All(c.Mutex("a"), c.RWMutex("b").Reader()).Acquire(t.Context()))
		if err := all.SetLabel(t.Context(), "both"); err != nil {
			t.Error(err)
		}
		if a, b := shown(t, c, "a"), shown(t, c, "b"); a != "both" || b != "both" {
			t.Errorf("labels %q and %q, want both", a, b)
		}
		mustRelease(t, all)
	})
}

// Writers of one node never undo each other's changes: a label stays after a downgrade, and a
// downgrade stays after a label, whichever request is late.
func TestLabelAndDowngradeKeepEachOther(t *testing.T) {
	for name, late := range map[string]faultdriver.Injector{
		"in order":               faultdriver.None(),
		"the first write late":   faultdriver.Nth(1, faultdriver.LateAfter(5*time.Second)),
		"the first reply lost":   faultdriver.Nth(1, faultdriver.LoseReply()),
		"the second write late":  faultdriver.Nth(2, faultdriver.LateAfter(5*time.Second)),
		"the second reply lost":  faultdriver.Nth(2, faultdriver.LoseReply()),
		"the first request lost": faultdriver.Nth(1, faultdriver.Drop()),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				nodes := faultdriver.If("a set of a queue node", func(op faultdriver.Op) bool {
					return op.Kind == faultdriver.Set && strings.Contains(op.Paths[0], "__WRIT__")
				}, late)
				c, other := connect(t, faultdriver.Wrap(e.Connector(), nodes), nil), connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
				if err := l.SetLabel(t.Context(), "second"); err != nil {
					t.Error(err)
				}
				if err := l.Downgrade(t.Context()); err != nil {
					t.Error(err)
				}
				if err := l.SetLabel(t.Context(), "third"); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second) // late writes have been applied
				found, err := other.Contenders(t.Context(), "x")
				if err != nil || len(found) != 1 || found[0].Label != "third" || found[0].Mode != zklock.Shared {
					t.Errorf("%+v, %v; want a reader with the label third", found, err)
				}
				mustRelease(t, l)
			})
		})
	}
}

// Another client's write between the read and the write is kept: the version shows it.
func TestSetLabelKeepsWhatOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		interfere := 3
		c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
			if op.Kind == faultdriver.Set && strings.Contains(op.Paths[0], "__WRIT__") && interfere > 0 {
				interfere--
				if _, err := s.Set(context.Background(), op.Paths[0], []byte(`{"host":"h","pid":7,"label":"theirs","mode":"exclusive","since":5,"trace":"t"}`), driver.AnyVersion); err != nil {
					t.Error(err)
				}
			}
			return faultdriver.None()
		}), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if err := l.SetLabel(t.Context(), "ours"); err != nil {
			t.Error(err)
		}
		found, err := c.Contenders(t.Context(), "x")
		if err != nil || found[0].Label != "ours" || found[0].Host != "h" || found[0].PID != 7 || found[0].Trace != "t" || interfere != 0 {
			t.Errorf("%+v, %v", found, err)
		}
		mustRelease(t, l)
	})
}

// Each error of SetLabel says what happened to the lock, or that the label is not confirmed.
func TestSetLabelReportsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"session_timeout": "20s", "connect_timeout": "2s"})
		s := plain(t, e)
		gone := mustLock(t)(c.Mutex("gone").Acquire(t.Context()))
		found, _ := c.Contenders(t.Context(), "gone")
		if err := s.Delete(t.Context(), c.Mutex("gone").Path()+"/"+found[0].Node, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if err := gone.SetLabel(t.Context(), "x"); !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrNodeDeleted) {
			t.Errorf("of a lock whose node was deleted: %v", err)
		}
		released := mustLock(t)(c.Mutex("released").Acquire(t.Context()))
		mustRelease(t, released)
		for what, l := range map[string]*zklock.Lock{"released": released, "nil": nil, "zero": {}} {
			if err := l.SetLabel(t.Context(), "x"); !errors.Is(err, zklock.ErrReleased) {
				t.Errorf("of a %s lock: %v", what, err)
			}
		}
		l := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
		e.Partition(memdriver.AroundServer(0), memdriver.AroundClients(0))
		why := errors.New("no time left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		err := l.SetLabel(ctx, "x")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || !strings.Contains(err.Error(), "not confirmed") || l.Err() != nil {
			t.Errorf("when its context ends: %v; the lock: %v", err, l.Err())
		}
		if err := l.SetLabel(t.Context(), "x"); !errors.Is(err, zklock.ErrUnavailable) || !strings.Contains(err.Error(), "not confirmed") || l.Err() != nil {
			t.Errorf("after connect_timeout: %v; the lock: %v", err, l.Err())
		}
		time.Sleep(time.Minute)
		if err := l.SetLabel(t.Context(), "x"); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("of a lost lock: %v", err)
		}
		e.Heal()
	})
}

// After a hand-over others read the label of the place's first holder, until the new holder
// sets one.
func TestLabelAfterAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
		next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithLabel("second"))
		mustRelease(t, l)
		l = <-next
		if got := shown(t, c, "x"); got != "first" || l.Token().Turn != 1 {
			t.Errorf("after a hand-over: label %q, token %v", got, l.Token())
		}
		if err := l.SetLabel(t.Context(), "third"); err != nil {
			t.Error(err)
		}
		if got := shown(t, c, "x"); got != "third" {
			t.Errorf("after SetLabel: label %q", got)
		}
		mustRelease(t, l)
	})
}

// The Label hook is asked for the label of an acquisition that has none, and of no other. It is
// asked again for each acquisition.
func TestLabelHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		asked, ahead := 0, ""
		c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{
			Label: func(context.Context) string {
				asked++
				return strings.Repeat("x", asked*200)
			},
			Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				ahead = e.Ahead.Label
				return ctx, nil
			},
		}))
		for i, want := range []string{"mine", strings.Repeat("x", 200), strings.Repeat("x", 256)} {
			var opts []zklock.AcquireOption
			if i == 0 {
				opts = append(opts, zklock.WithLabel("mine"))
			}
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), opts...))
			if got := shown(t, c, "x"); got != want || asked != i {
				t.Errorf("acquisition %d has the label %q after %d calls, want %q after %d", i, got, asked, want, i)
			}
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithLabel("waiter"), zklock.WithWait(time.Second)); err == nil || ahead != want {
				t.Errorf("a waiter of the same process sees the label %q, want %q; %v", ahead, want, err)
			}
			mustRelease(t, l)
		}
	})
}

// holdUp makes the next read or write of a queue node's data wait, once it is asked to.
type holdUp struct {
	kind  faultdriver.Kind
	armed atomic.Bool
	held  chan struct{} // closed when a request waits
	goOn  chan struct{} // to be closed by the test
}

// heldUp returns a connector, and the holdUp of its requests of a kind.
func heldUp(c driver.Connector, kind faultdriver.Kind) (driver.Connector, *holdUp) {
	h := &holdUp{kind: kind, held: make(chan struct{}), goOn: make(chan struct{})}
	return faultcontrol.Control(c, func(op faultdriver.Op) faultdriver.Fault {
		if op.Kind == kind && strings.Contains(op.Paths[0], "__WRIT__") && h.armed.CompareAndSwap(true, false) {
			close(h.held)
			<-h.goOn
		}
		return faultdriver.None()
	}), h
}

// arm has the next request wait.
func (h *holdUp) arm() { h.armed.Store(true) }

// release lets the request go on, and waits until the client has no more to do.
func (h *holdUp) release() {
	close(h.goOn)
	synctest.Wait()
}

// relabel sets a label, which the ensemble confirms.
func relabel(t *testing.T, l *zklock.Lock, label string) {
	t.Helper()
	if err := l.SetLabel(t.Context(), label); err != nil {
		t.Fatal(err)
	}
}

// A label that the ensemble has confirmed stays, although the same client was rewriting the node
// for another purpose, and the read or the write of that rewrite is executed only after SetLabel
// has returned.
func TestConfirmedLabelStays(t *testing.T) {
	for what, kind := range map[string]faultdriver.Kind{"read": faultdriver.Get, "write": faultdriver.Set} {
		t.Run("after a hand-over/late "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				slow, late := heldUp(e.Connector(), kind)
				c, other := connect(t, slow, nil), connect(t, e.Connector(), nil)
				first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
				writer := acquiring(t, c.Mutex("x"), t.Context(), labelled("writer"))
				reader := acquiring(t, c.RWMutex("x").Reader(), t.Context(), labelled("reader"))
				mustRelease(t, first)
				w := <-writer
				late.arm()
				mustRelease(t, w)
				r := <-reader // its client makes the node a reader's, since it may not be alone
				<-late.held
				relabel(t, r, "confirmed")
				late.release()
				found, err := other.Contenders(t.Context(), "x")
				if err != nil || len(found) != 1 || found[0].Label != "confirmed" || found[0].Mode != zklock.Shared {
					t.Errorf("others read %+v, %v; want a reader with the label confirmed", found, err)
				}
				mustRelease(t, r)
			})
		})
		t.Run("next to a Downgrade/late "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				slow, late := heldUp(e.Connector(), kind)
				c, other := connect(t, slow, nil), connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), labelled("first")))
				late.arm()
				downgraded := make(chan error, 1)
				go func() { downgraded <- l.Downgrade(t.Context()) }()
				<-late.held
				relabel(t, l, "confirmed")
				late.release()
				if err := <-downgraded; err != nil {
					t.Error(err)
				}
				found, err := other.Contenders(t.Context(), "x")
				if err != nil || len(found) != 1 || found[0].Label != "confirmed" || found[0].Mode != zklock.Shared {
					t.Errorf("others read %+v, %v; want a reader with the label confirmed", found, err)
				}
				mustRelease(t, l)
			})
		})
		t.Run("of the next holder/late "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				slow, late := heldUp(e.Connector(), kind)
				c, other := connect(t, slow, nil), connect(t, e.Connector(), nil)
				first := mustLock(t)(c.Mutex("x").Acquire(t.Context(), labelled("first")))
				next := acquiring(t, c.Mutex("x"), t.Context(), labelled("second"))
				late.arm()
				set := make(chan error, 1)
				go func() { set <- first.SetLabel(t.Context(), "of the one before") }()
				<-late.held
				mustRelease(t, first)
				second := <-next
				relabel(t, second, "confirmed")
				late.release()
				if err := <-set; !errors.Is(err, zklock.ErrReleased) {
					t.Errorf("SetLabel of a lock that was released meanwhile: %v, want ErrReleased", err)
				}
				if got := shown(t, other, "x"); got != "confirmed" {
					t.Errorf("others read %q, want confirmed", got)
				}
				mustRelease(t, second)
			})
		})
	}
}

// A Downgrade changes nothing but the mode: what another client has written stays.
func TestDowngradeChangesTheModeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector(), nil), plain(t, e)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), labelled("first")))
		found, err := c.Contenders(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set(t.Context(), "/zklock/x/"+found[0].Node, []byte(`{"host":"h","pid":7,"label":"l","mode":"exclusive","since":5,"trace":"t"}`), driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		found, err = c.Contenders(t.Context(), "x")
		if err != nil || found[0].Label != "l" || found[0].Trace != "t" || !found[0].Since.Equal(time.UnixMilli(5)) || found[0].Mode != zklock.Shared {
			t.Errorf("%+v, %v; want the former label, trace and time, and a reader", found, err)
		}
		mustRelease(t, l)
	})
}
