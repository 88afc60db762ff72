package zklock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// lossDelay is the loss_delay of these tests. It is long compared with everything but the
// session timeout. The ensemble's tick is 500ms.
const lossDelay = 2 * time.Second

// delayed returns the settings of a client with loss_delay.
func delayed() map[string]string {
	return map[string]string{"session_timeout": "6s", "tick_time": "500ms", "loss_delay": lossDelay.String()}
}

func delayEnsemble(servers int) *memdriver.Ensemble {
	return memdriver.New(memdriver.WithServers(servers), memdriver.WithTickTime(500*time.Millisecond), memdriver.WithLatency(time.Millisecond))
}

// A holder that can reach the ensemble again right after its loss still keeps the next
// waiter out until the delay is over.
func TestLossDelayHoldsTheNextBackThoughTheSessionIsReachable(t *testing.T) {
	for _, c := range []struct {
		what   string
		params map[string]string
		gap    func(time.Duration) bool
	}{
		{"with loss_delay", delayed(), func(d time.Duration) bool { return d >= lossDelay && d < lossDelay+100*time.Millisecond }},
		{"without", map[string]string{"session_timeout": "6s", "tick_time": "500ms"}, func(d time.Duration) bool { return d < 100*time.Millisecond }},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := delayEnsemble(1)
			a, b := connect(t, e.Connector(), c.params), connect(t, e.Connector(), nil) // b has no loss_delay and needs none
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			next := acquiring(t, b.Mutex("x"), t.Context())
			time.Sleep(time.Second)
			lost := ended(l)
			cut := memdriver.AroundSession(e.Sessions()[0])
			e.Partition(cut)
			at := <-lost
			e.Heal()
			n := <-next
			if gap := time.Since(at); !c.gap(gap) {
				t.Errorf("%s: granted %v after the loss", c.what, gap)
			}
			if !errors.Is(l.Err(), zklock.ErrLeaseOver) {
				t.Errorf("%s: lost because of %v", c.what, l.Err())
			}
			mustRelease(t, n)
		})
	}
}

func TestLossDelayDoesNotDelayReleasesNorClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		prompt := func(what string, next <-chan *zklock.Lock, began time.Time) *zklock.Lock {
			l := <-next
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Errorf("granted %v after %s", d, what)
			}
			return l
		}
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		began := time.Now()
		mustRelease(t, l)
		l = prompt("a release", next, began)

		next = acquiring(t, a.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		began = time.Now()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if !lostByClose(l.Err()) {
			t.Errorf("after Close: %v", l.Err())
		}
		mustRelease(t, prompt("Close", next, began))
	})
}

// The node of a lock that was lost before Close still stays for loss_delay: Close waits for
// that.
func TestLossDelayOutlastsACloseAfterTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		lost := ended(l)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		at := <-lost
		e.Heal()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("granted %v after the loss", gap)
		}
		mustRelease(t, n)
	})
}

// When an operator deletes a node of an All, the node's name is free at once. The client
// keeps the other nodes for loss_delay.
func TestLossDelayKeepsTheOtherNodesOfAnAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		all := mustLock(t)(zklock.All(a.Mutex("x"), a.Mutex("y")).Acquire(t.Context()))
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(3 * time.Second) // until the holder watches its nodes
		lost := ended(all)
		if n := e.Break("/zklock/x"); n != 1 {
			t.Fatalf("%d nodes were broken", n)
		}
		at := <-lost
		n := <-next
		if gap := time.Since(at); gap < lossDelay || gap > lossDelay+100*time.Millisecond {
			t.Errorf("y was granted %v after x was broken", gap)
		}
		mustRelease(t, n)
		if !errors.Is(all.Err(), zklock.ErrNodeDeleted) {
			t.Errorf("lost because of %v", all.Err())
		}
	})
}

func TestLossDelayThatDoesNotFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		params string
		says   []string // nil: Open accepts it
	}{
		{"loss_delay=1s", nil},
		{"loss_delay=1100ms", []string{"loss_delay=1.1s", "10s", "at least 10.1s"}},
		{"loss_delay=5s", []string{"at least 14s"}},
		{"loss_delay=5s&session_timeout=14s", nil},
		{"loss_delay=5s&tick_time=500ms", nil},
		{"loss_delay=6s&tick_time=500ms", []string{"at least 12s"}},
		{"loss_delay=-1s", []string{`"loss_delay"`}},
		{"loss_delay=soon", []string{`"loss_delay"`, "duration"}},
		{"loss_delay=2000000h", []string{`"loss_delay"`}},
	} {
		client, err := zklock.Open("mem://?" + c.params)
		if err == nil {
			_ = client.Close()
		}
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: %v", c.params, err)
		}
		for _, word := range c.says {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", c.params, err, word)
			}
		}
	}
	// The session timeout that the ensemble grants may be too short for loss_delay.
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond)) // grants 10s at most
		c := connect(t, e.Connector(), map[string]string{"session_timeout": "20s", "tick_time": "500ms", "loss_delay": "6s"})
		began := time.Now()
		_, err := c.Mutex("x").Acquire(t.Context())
		if err == nil || !strings.Contains(err.Error(), "loss_delay=6s") || !strings.Contains(err.Error(), "granted 10s") {
			t.Errorf("with a session timeout of 10s granted: %v", err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the error took %v, want at most 1s", d)
		}
	})
}
