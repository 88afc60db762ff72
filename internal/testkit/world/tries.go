package world

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Answer is what a request of CheckTries got.
type Answer int

// The answers. Refused stands for everything that is none of the others.
const (
	Served Answer = iota
	Contended
	Unavailable
	Refused
)

// tryLimit is how long a try goes on without a session, with the default connect_timeout of 10 s.
const tryLimit = 10 * time.Second / 4

// CheckTries sends requests through an adapter, in synctest bubbles. adapter returns a function that makes
// one request for the lock that pick returns, and calls work while it has the lock. The adapter must
// not wait for other contenders.
//
// While the ensemble answers, no request is unavailable: not those that a program gets before its
// client has a session, and not those after a loss. In an outage none is contended. The first ones
// wait for a short time, and later ones are answered at once.
func CheckTries(t *testing.T, adapter func(t *testing.T, pick func() zklock.Acquirer, work func()) (request func() Answer)) {
	const together = 16
	start := func(t *testing.T, opts ...memdriver.Option) (e *memdriver.Ensemble, all func() map[Answer]int) {
		e = memdriver.New(opts...)
		c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), PoolMaxSessions: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		request := adapter(t, func() zklock.Acquirer { return c.Mutex("orders/42") }, func() { time.Sleep(time.Second) })
		return e, func() map[Answer]int {
			answers := make(chan Answer, together)
			var wg sync.WaitGroup
			for range together {
				wg.Go(func() { answers <- request() })
			}
			wg.Wait()
			close(answers)
			n := make(map[Answer]int)
			for a := range answers {
				n[a]++
			}
			return n
		}
	}
	t.Run("the ensemble answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, all := start(t, memdriver.WithLatency(time.Millisecond))
			for _, what := range []string{"at the start", "after a loss"} {
				if n := all(); n[Served] != 1 || n[Contended] != together-1 {
					t.Errorf("%s: %d served, %d contended, %d unavailable, %d refused; want 1 served and the others contended", what, n[Served], n[Contended], n[Unavailable], n[Refused])
				}
				e.ExpireAll()
			}
		})
	})
	for _, used := range []bool{false, true} {
		name := "an outage before the first session"
		if used {
			name = "an outage"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, all := start(t)
				if used {
					all()
				}
				e.Partition(memdriver.AroundClients(0).Reset())
				defer e.Heal()
				most := tryLimit
				for range 100 {
					began := time.Now()
					n := all()
					if took := time.Since(began); n[Unavailable] != together || took > most {
						t.Fatalf("%d served, %d contended, %d unavailable, %d refused, after %v; want them unavailable after %v at most", n[Served], n[Contended], n[Unavailable], n[Refused], took, most)
					}
					most = 0
					time.Sleep(500 * time.Millisecond)
				}
			})
		})
	}
}
