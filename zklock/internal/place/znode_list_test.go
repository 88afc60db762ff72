package place_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The nodes of a session that is over are not taken for left over: they go with it, and until then
// another client must not be granted what it held. The session may end while its nodes are looked at.
func TestNodesOfASessionThatIsOverAreNoStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := openSession(t)
		desk, node := s.Desk, queue.Node{GUID: queue.GUID{Session: s.Session.ID(), Serial: 7}, Name: "of a place that is gone"}
		if !desk.Disowns(node) {
			t.Error("a session that lives does not disown a node that no place owns")
		}
		pool.Close()
		if desk.Disowns(node) {
			t.Error("a session that is over disowns a node")
		}
	})
}

// A session remembers a list only while it is under way, whichever waiter gives up, and when. If a list
// stayed, it would hold up the next waiter of that queue for ever, and take memory.
func TestListsThatAreNotNeededAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := openSession(t)
		defer pool.Close()
		random := rand.New(rand.NewPCG(1, 2))
		var waiters sync.WaitGroup
		for i := range 1000 {
			z := place.Znode{Desk: s.Desk, Path: "/zklock/" + strconv.Itoa(i)}
			for range 1 + random.IntN(4) {
				begins := time.Duration(random.IntN(40)) * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), begins+time.Duration(1+random.IntN(40))*time.Millisecond)
				waiters.Go(func() {
					defer cancel()
					time.Sleep(begins)
					if _, err := z.List(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, driver.ErrNoNode) {
						t.Errorf("a list of a queue that is not there: %v", err)
					}
				})
			}
		}
		waiters.Wait()
		time.Sleep(time.Second) // until the last answers have come; no waiter wants them
		if lists := s.Desk.Lists(); lists != 0 {
			t.Errorf("lists of %d queues are remembered after all waiters have left", lists)
		}
	})
}

// openSession opens a session on an ensemble in memory whose requests take 10 ms. The caller closes the pool.
func openSession(t *testing.T) (*session.Pool[*place.WatchedDesk], *place.WatchedDesk) {
	t.Helper()
	set := &place.NodeSettings{Dialect: queue.Default, CreateRoot: true, ACL: driver.OpenACL(driver.PermAll)}
	set.Settings = session.Settings{Root: "/zklock", SessionTimeout: 10 * time.Second, TickTime: time.Second,
		ConnectTimeout: 10 * time.Second, PoolMaxSessions: 1, Jitter: session.Jitter}
	pool := session.NewPool[*place.WatchedDesk](&set.Settings, memdriver.New(memdriver.WithLatency(10*time.Millisecond)).Connector())
	place.Serve(place.NewShared(set), pool, func(string) bool { return false })
	s, err := pool.Session(t.Context(), "/zklock/orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	return pool, s
}
