package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// TestServerWithRoomForOneConnection: a server lets an address have one connection, so one of the client's sessions cannot be opened.
// Every name can be acquired, and is not waited for as long as connect_timeout; Healthy and Ping say what callers meet.
func TestServerWithRoomForOneConnection(t *testing.T) {
	t.Parallel()
	e := ensemble.Start(t, ensemble.Config{Extra: []string{"maxClientCnxns=1"}})
	c := dial(t, e.Hosts(), keys("pool_max_sessions", "2", "connect_timeout", "60s"))
	for i := range 20 {
		began := time.Now()
		release(t, acquire(t, c.Mutex(fmt.Sprint("name-", i))))
		if took := time.Since(began); took > 30*time.Second { // it took connect_timeout when each name had its session
			t.Errorf("name %d took %v", i, took)
		}
	}
	if err := c.Healthy(); err != nil {
		t.Error(err)
	}
	if err := c.Ping(within(t)); err != nil {
		t.Error(err)
	}
	if st := c.Stats(); st.Connected != 1 || st.SessionsLost != 0 {
		t.Errorf("%d sessions are connected, and %d were lost, want one and none", st.Connected, st.SessionsLost)
	}
}
