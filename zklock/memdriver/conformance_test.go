package memdriver_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// harness lets the conformance suite control an ensemble.
type harness struct {
	t    *testing.T
	e    *memdriver.Ensemble
	tick time.Duration
	reap time.Duration
}

func (h harness) Connector() driver.Connector { return h.e.Connector() }

func (h harness) Authenticated() (driver.Connector, bool) {
	return h.e.As("alice", driver.NewSecret("open sesame")), true
}

func (h harness) Timeout() time.Duration { return 4 * h.tick }

func (h harness) Limits() (shortest, longest time.Duration) { return 2 * h.tick, 20 * h.tick }

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
	return h.e.HoldReplies(s.ID()), true
}

func (h harness) Stale(s driver.Session, change func()) (heal func(), ok bool) {
	return corekit.Stale(h.e, s, change)
}

func (h harness) Reaping() time.Duration { return 2 * h.reap }

func (h harness) Parallel() bool { return false }

func newHarness(opts ...memdriver.Option) func(*testing.T) drivertest.Harness {
	return func(t *testing.T) drivertest.Harness {
		h := harness{t: t, tick: 500 * time.Millisecond, reap: 2 * time.Second}
		h.e = memdriver.New(append(opts, memdriver.WithTickTime(h.tick), memdriver.WithReapInterval(h.reap))...)
		t.Cleanup(func() {
			if err := h.e.Close(); err != nil {
				t.Error(err)
			}
		})
		return h
	}
}

func TestConformance(t *testing.T) {
	drivertest.RunSynctest(t, newHarness())
}

func TestConformanceThreeServers(t *testing.T) {
	drivertest.RunSynctest(t, newHarness(memdriver.WithServers(3)))
}

func TestConformanceLatency(t *testing.T) {
	drivertest.RunSynctest(t, newHarness(memdriver.WithServers(3), memdriver.WithLatency(3*time.Millisecond)))
}

// TestConformanceWallClock runs on the real clock. There, a mutex that is held while
// a goroutine waits, or an unsynchronised access, becomes visible.
func TestConformanceWallClock(t *testing.T) {
	drivertest.Run(t, newHarness())
}
