package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Operators restart servers with a lower limit while clients run. What a session was shown before shows nothing of the servers
// that it is connected to afterwards: it asks again before it has more nodes than they can read at its end, and only then. If the
// limit is the same, one question is enough.
func TestSessionAsksAgainOnANewConnection(t *testing.T) {
	for _, c := range []struct {
		what        string
		grown, held int // so many names before, of which so many are held when the connection is lost
		expires     bool
		limit       int // of the servers then
		most        int // bytes of a session afterwards
		asked, cuts int
	}{
		{"the limit is lowered", 100, 0, false, 1 << 16, 1 << 16 / 8 * 7, 4, 3},
		{"the limit is lowered a little", 100, 0, false, 1 << 17, 1 << 17 / 8 * 7, 4, 3},
		{"while the session has more", 100, 90, false, 1 << 16, 90 * 1575, 3, 3},
		{"and the session ends", 100, 0, true, 1 << 16, 1 << 16 / 8 * 7, 4, 3},
		{"the limit is the same", 140, 130, false, 1 << 18, 1 << 18 / 8 * 7, 1, 0},
		{"few are held", 140, 10, false, 1 << 18, 1 << 18 / 8 * 7, 2, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithLatency(time.Millisecond))
				limit, asked, cuts := 1<<18, 0, 0
				narrow := faultdriver.If("narrow", func(op faultdriver.Op) bool {
					if op.Kind != faultdriver.Get || len(op.Paths[0]) < 16<<10 {
						return false
					}
					if asked++; len(op.Paths[0]) > limit {
						cuts++
						return true
					}
					return false
				}, faultdriver.Fail(driver.ErrConnLoss))
				client := connect(t, faultdriver.Wrap(e.Connector(), narrow), map[string]string{"pool_max_sessions": "1", "jute_maxbuffer": "262144"})
				var locks []*zklock.Lock
				for i := range c.grown {
					locks = append(locks, mustLock(t)(client.Mutex(wide(i)).Acquire(t.Context())))
				}
				for _, l := range locks[c.held:] {
					mustRelease(t, l)
				}
				limit, asked = c.limit, 0
				id := e.Sessions()[0]
				if c.expires {
					e.Expire(id)
				} else {
					e.KillConnection(id)
				}
				time.Sleep(time.Minute)
				var err error
				for i := c.grown; err == nil && i < 500; i++ {
					_, err = client.Mutex(wide(i)).Acquire(t.Context())
				}
				if !errors.Is(err, zklock.ErrTooManyWaiters) {
					t.Error(err)
				}
				for _, size := range closing(t, e) {
					if size > c.most || size < c.most*7/8 {
						t.Errorf("the session has %d bytes of paths, want almost %d", size, c.most)
					}
				}
				if asked != c.asked || cuts != c.cuts {
					t.Errorf("the servers were asked %d times, and have cut %d connections; want %d and %d", asked, cuts, c.asked, c.cuts)
				}
			})
		})
	}
}
