package memdriver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An ensemble without clients stands still. If a client leaves while its session is
// being made, the leader may receive the request for the session after that. Then the
// ensemble has to go on, and has to keep later sessions alive too.
func TestSessionsLiveAfterOneWasAbandoned(t *testing.T) {
	const latency, timeout = time.Millisecond, 2 * time.Second
	for after := latency / 2; after < 10*latency; after += latency / 4 {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			_, _ = e.Connector(1).Connect(ctx, timeout) // the outcome does not matter
			cancel()
			pass(5 * latency)
			s := connect(t, e.Connector(2), timeout)
			create(t, s, "/held", driver.Ephemeral)
			pass(3 * timeout)
			if st := state(s); st != driver.Connected || !has(t, s, "/held") {
				t.Errorf("after a client left after %v, the next session is %v", after, st)
			}
		}, memdriver.WithServers(3), memdriver.WithTickTime(timeout/10), memdriver.WithLatency(latency))
	}
}

// The last client leaves while the ensemble has no leader. The servers still have to
// elect one: otherwise the session and its ephemerals would stay for ever.
func TestSessionsEndThoughTheLastClientLeftWithoutALeader(t *testing.T) {
	const timeout = 2 * time.Second
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(1), timeout)
		create(t, s, "/held", driver.Ephemeral)
		for server := range 3 {
			e.Partition(memdriver.AroundServer(server))
		}
		pass(10 * timeout) // every server looks for the others now
		ctx, cancel := context.WithTimeout(t.Context(), timeout/10)
		_ = s.Close(ctx) // no leader receives this request
		cancel()
		pass(timeout)
		e.Heal()
		pass(5 * timeout)
		if dump := e.Dump(); strings.Contains(dump, "held") {
			t.Errorf("the ephemeral of the last session was left behind:\n%s", dump)
		}
	}, memdriver.WithServers(3), memdriver.WithTickTime(timeout/10))
}
