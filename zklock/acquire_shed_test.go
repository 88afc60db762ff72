package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Servers answer the session, and never what concerns one name; of the other requests they shed some, at random. Each caller
// has a name of its own, and no deadline: it returns, the one that is never served as in an outage. Being patient with the requests of others must
// not become a wait without an end.
func TestCallersThatAreNeverServedReturn(t *testing.T) {
	const callers = 150
	first, slowest := rand.Uint64(), time.Duration(0)
	for i := range uint64(long.Count(t, "ZKLOCK_RUNS", 20, 1000)) {
		seed := first + i
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			shed := []faultdriver.Injector{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent(), faultdriver.Hang(), faultdriver.Delay(time.Second)}
			never := []faultdriver.Injector{faultdriver.Drop(), faultdriver.NotSent(), faultdriver.Hang()}[r.IntN(3)]
			faults := faultdriver.Any(faultdriver.Path("/zklock/never/...", never),
				faultdriver.Path("/zklock/n*/...", faultdriver.Random(seed, r.Float64()/3, shed...)),
				faultdriver.Path("/zklock/n*", faultdriver.Random(seed+1, r.Float64()/3, shed...)))
			e := memdriver.New(memdriver.WithLatency(time.Duration(r.Int64N(int64(200 * time.Millisecond)))))
			c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"pool_max_sessions": fmt.Sprint(1 + r.IntN(2))})
			type outcome struct {
				name string
				took time.Duration
				err  error
			}
			done := make(chan outcome, callers)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for n := range callers {
				name := fmt.Sprint("n", n)
				if n == 0 {
					name = "never"
				}
				go func() {
					began := time.Now()
					l, err := c.Mutex(name).Acquire(ctx)
					took := time.Since(began)
					if err == nil && n%2 == 0 {
						go func() { _ = l.Release(ctx) }()
					}
					done <- outcome{name, took, err}
				}()
			}
			for range callers {
				select {
				case o := <-done:
					slowest = max(slowest, o.took)
					if o.name == "never" && o.err == nil {
						t.Errorf("seed %d: %s: a lock that the servers do not know", seed, o.name)
					}
				case <-time.After(4 * corekit.ConnectTimeout):
					t.Errorf("seed %d: a caller has not returned within %v", seed, 20*corekit.ConnectTimeout)
					cancel()
				}
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("the slowest of all callers returned after %v, with connect_timeout=%v", slowest, corekit.ConnectTimeout)
}
