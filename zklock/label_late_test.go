package zklock_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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
