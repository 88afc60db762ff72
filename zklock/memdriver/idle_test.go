package memdriver_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An ensemble that nobody uses stands still. A client that goes while its session
// is being made leaves one that the leader has yet to hear of: then it goes on,
// and hears of the next ones, too.
func TestSessionsLiveAfterOneWasAbandoned(t *testing.T) {
	const latency, timeout = time.Millisecond, 2 * time.Second
	for after := latency / 2; after < 10*latency; after += latency / 4 {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			_, _ = e.Connector(1).Connect(ctx, timeout) // whether it is in time does not matter
			cancel()
			pass(5 * latency)
			s := connect(t, e.Connector(2), timeout)
			create(t, s, "/held", driver.Ephemeral)
			pass(3 * timeout)
			if st := state(s); st != driver.Connected || !has(t, s, "/held") {
				t.Errorf("a client went after %v: the next one's session is %v", after, st)
			}
		}, memdriver.WithServers(3), memdriver.WithTickTime(timeout/10), memdriver.WithLatency(latency))
	}
}
