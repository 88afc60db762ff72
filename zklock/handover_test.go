package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestWithoutHandoverHasATokenOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		handed := acquiring(t, c.Mutex("x"), t.Context())
		own := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithoutHandover())
		mustRelease(t, l)
		h := <-handed
		if h.Token().Zxid != l.Token().Zxid || h.Token().Turn != l.Token().Turn+1 {
			t.Errorf("handed: %v after %v", h.Token(), l.Token())
		}
		mustRelease(t, h)
		o := <-own
		if o.Token().Zxid == h.Token().Zxid || o.Token().Compare(h.Token()) <= 0 || o.Token().Turn != 0 {
			t.Errorf("own: %v after %v", o.Token(), h.Token())
		}
		mustRelease(t, o)
	})
}

func TestHandoverLimitLetsOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_limit": "2"}), connect(t, e.Connector(), nil)
		first := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		var order []string
		done := make(chan struct{})
		take := func(c *zklock.Client, who string) {
			go func() {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				order = append(order, who)
				time.Sleep(time.Millisecond)
				mustRelease(t, l)
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		for range 5 {
			take(a, "a")
		}
		take(b, "b") // behind a's node
		mustRelease(t, first)
		for range 6 {
			<-done
		}
		if got := len(order); got != 6 {
			t.Fatal(order)
		}
		if order[3] != "b" {
			t.Errorf("handover_limit=2: %v", order)
		}
	})
}
