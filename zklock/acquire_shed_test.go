package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Servers answer the session, and never what concerns one name; of the other requests they shed some, at random. Each caller
// has a name of its own, and no deadline: it returns, the one that is never served as in an outage. Being patient with the requests of others must
// not become a wait without an end.
//
// docs/guarantees.md has the bound for the one that is never served, but for the time in line: behind the transaction under way, and of
// many callers also behind the requests of others, of which a third is shed at most. The time of one request is more than enough for that.
func TestCallersThatAreNeverServedReturn(t *testing.T) {
	const few, many = 30, 150
	answer := corekit.SessionTimeout * 2 / 3
	bound := 2*corekit.ConnectTimeout + answer
	within := bound + answer
	first, slowest := uint64(1), make(map[int]time.Duration)
	if long.On() {
		first = rand.Uint64()
	}
	for i := range uint64(long.Count(t, "ZKLOCK_RUNS", 20, 1000)) {
		seed := first + i
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			shed := []faultdriver.Injector{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent(), faultdriver.Hang(), faultdriver.Delay(time.Second)}
			never := []faultdriver.Injector{faultdriver.Drop(), faultdriver.NotSent(), faultdriver.Hang()}
			if n := r.IntN(len(never) + 1); n < len(never) { // else each request meets another one
				never = never[n : n+1]
			}
			callers := few
			if r.IntN(2) == 0 {
				callers = many
			}
			faults := faultdriver.Any(faultdriver.Path("/zklock/never/...", faultdriver.Random(seed+2, 1, never...)),
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
					if o.name != "never" {
						continue
					}
					slowest[callers] = max(slowest[callers], o.took)
					if !errors.Is(o.err, zklock.ErrUnavailable) || o.took > within {
						t.Errorf("seed %d: the caller that is never served has returned after %v, with %v; want ErrUnavailable within %v", seed, o.took, o.err, within)
					}
				case <-time.After(time.Hour):
					t.Fatalf("seed %d: a caller has not returned within an hour", seed)
				}
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("the slowest of the callers that are never served returned after %v, by the number of callers", slowest)
}
