package wire_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

const (
	tick = 500 * time.Millisecond
	reap = 2 * time.Second
)

// harness lets the conformance suite control zkdriver's sessions.
type harness struct {
	e *memdriver.Ensemble
	n *wire.Network
}

func (h harness) Connector() driver.Connector { return h.n.Connector("") }

func (h harness) Authenticated() (driver.Connector, bool) { return h.n.Connector("alice"), true }

func (h harness) Timeout() time.Duration { return 4 * tick }

func (h harness) Limits() (shortest, longest time.Duration) { return 2 * tick, 20 * tick }

func (h harness) Expire(_ context.Context, s driver.Session) error {
	h.e.KillSession(s.ID())
	return nil
}

func (h harness) Kill(s driver.Session) { h.e.KillConnection(s.ID()) }

func (h harness) Cut(s driver.Session) (heal func()) {
	cut := memdriver.AroundSession(s.ID()).Reset()
	h.e.Partition(cut)
	return func() { h.e.Heal(cut) }
}

func (h harness) Hold(s driver.Session) (release func(), ok bool) {
	return h.n.Of(s.ID()).Silence(wire.Down), true
}

// Stale leaves a session only a server that lags. The leader cannot lag.
func (h harness) Stale(s driver.Session, change func()) (heal func(), ok bool) {
	control := memcontrol.Of(h.e)
	behind, cuts := -1, []memdriver.Cut(nil)
	for i := range control.Servers() {
		if behind < 0 && wire.Addr(i) != s.Server() && i != h.e.Leader() {
			behind = i
			continue
		}
		cuts = append(cuts, memdriver.BetweenSession(s.ID(), i).Reset())
	}
	if behind < 0 {
		return nil, false
	}
	control.Lag(behind, 2*time.Second) // longer than a test looks at it
	change()
	h.e.Partition(cuts...)
	return func() {
		control.Lag(behind, 0)
		h.e.Heal(cuts...)
	}, true
}

func (h harness) Reaping() time.Duration { return 2 * reap }

func (h harness) Parallel() bool { return false }

func newHarness(servers int, trip time.Duration, torn, encrypted bool) func(*testing.T) drivertest.Harness {
	return func(t *testing.T) drivertest.Harness {
		fips.SkipWire(t)
		e := memdriver.New(memdriver.WithServers(servers), memdriver.WithLatency(trip), memdriver.WithTickTime(tick), memdriver.WithReapInterval(reap))
		n := wire.New(e)
		for i := range servers {
			n.Distance(i, trip, trip/2, trip)
		}
		n.Tear(torn)
		if encrypted {
			n.Encrypt(t.TempDir())
		}
		t.Cleanup(func() {
			n.Close()
			_ = e.Close()
		})
		return harness{e, n}
	}
}

// The suite holds zkdriver and go-zookeeper to the protocol of these servers, in virtual time.
func TestConformance(t *testing.T) {
	drivertest.RunSynctest(t, newHarness(1, 0, false, false))
}

func TestConformanceFarAndTorn(t *testing.T) {
	drivertest.RunSynctest(t, newHarness(3, 3*time.Millisecond, true, false))
}

func TestConformanceOverTLS(t *testing.T) {
	drivertest.RunSynctest(t, newHarness(3, 3*time.Millisecond, true, true))
}
