package place_test

import (
	"context"
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
		set := &place.Settings{Dialect: queue.Default, CreateRoot: true, ACL: driver.OpenACL(driver.PermAll)}
		set.Settings = session.Settings{Root: "/zklock", SessionTimeout: 10 * time.Second, TickTime: time.Second,
			ConnectTimeout: 10 * time.Second, PoolMaxSessions: 1, Jitter: session.Jitter}
		pool := session.NewPool[*place.Session](&set.Settings, memdriver.New().Connector())
		place.Serve(place.NewShared(set), pool, func(string) bool { return false })
		s, err := pool.Session(context.Background(), "/zklock/orders", 0)
		if err != nil {
			t.Fatal(err)
		}
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
