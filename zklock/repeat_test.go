package zklock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// However many new names are acquired at once, the transactions that create their znodes do
// not all go ahead of a heartbeat or a release. Another client has used the names, so each
// transaction is refused, and none shares a group.
func TestNewNamesDoNotCrowdOutHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, limit, groups = 1000, 64, 2
		var mu sync.Mutex
		now, most, all := 0, 0, 0
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind != "enqueue" && e.Kind != "commit" && e.Kind != "release" {
				return ctx, nil
			}
			mu.Lock()
			defer mu.Unlock()
			now, all = now+1, all+1
			most = max(most, now)
			return ctx, func(error) {
				mu.Lock()
				defer mu.Unlock()
				now--
			}
		}}
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		c, other := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil)
		for _, c := range []*zklock.Client{other, c} {
			var wg sync.WaitGroup
			for i := range names {
				wg.Go(func() {
					l, err := c.Mutex("n" + strconv.Itoa(i)).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mustRelease(t, l)
				})
			}
			wg.Wait()
		}
		if all <= names || most < limit || most > limit+groups {
			t.Errorf("%d transactions, at most %d at once; want more than %d, and %d to %d", all, most, names, limit, limit+groups)
		}
		if st := c.Stats(); st.SessionsLost != 0 {
			t.Errorf("%+v, want no lost session", st)
		}
	})
}
