package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Servers elect nobody for longer than sessions live. When they have a leader
// again, what was lost meanwhile does not stay in the way for another session
// timeout: whoever has lost it takes it away.
func TestLostSessionIsClosedHoweverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(500*time.Millisecond))
		params := map[string]string{"session_timeout": timeout.String(), "tick_time": "500ms", "connect_timeout": "1h"}
		a, b := connect(t, e.Connector(), params), connect(t, e.Connector(), params)
		lost := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Second)
		for server := range 3 {
			e.Partition(memdriver.AroundServer(server))
		}
		<-lost.Done()
		time.Sleep(10 * timeout)
		next := acquiring(t, b.Mutex("x"), t.Context())
		e.Heal()
		healed := time.Now()
		l := <-next
		if took := time.Since(healed); took >= timeout/2 {
			t.Errorf("the lock was in the way for %v after the servers had each other again", took)
		}
		mustRelease(t, l)
	})
}
