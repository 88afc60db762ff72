package drivertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

const (
	tick    = 500 * time.Millisecond
	reaping = 2 * time.Second
)

// harness is an ensemble in memory whose sessions have a flaw.
type harness struct {
	ensemble *memdriver.Ensemble
	flaw     flaw
}

// newHarness makes an ensemble. Two of its servers lag, so that a test that does not sync reads
// old data.
func newHarness(f flaw) func(t *testing.T) drivertest.Harness {
	return func(t *testing.T) drivertest.Harness {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond),
			memdriver.WithTickTime(tick), memdriver.WithReapInterval(reaping))
		memcontrol.Of(e).Lag(1, 20*time.Millisecond)
		memcontrol.Of(e).Lag(2, 40*time.Millisecond)
		t.Cleanup(func() { _ = e.Close() })
		return harness{e, f}
	}
}

func (h harness) Connector() driver.Connector { return flawed{h.ensemble.Connector(), h.flaw} }

func (h harness) Authenticated() (driver.Connector, bool) {
	return flawed{h.ensemble.As("user", driver.NewSecret("password")), h.flaw}, true
}

func (h harness) Timeout() time.Duration { return 4 * tick }

func (h harness) Limits() (shortest, longest time.Duration) { return 2 * tick, 20 * tick }

func (h harness) Expire(_ context.Context, s driver.Session) error {
	h.ensemble.KillSession(s.ID())
	return nil
}

func (h harness) Kill(s driver.Session) { h.ensemble.KillConnection(s.ID()) }

func (h harness) Cut(s driver.Session) (heal func()) {
	cut := memdriver.AroundSession(s.ID()).Reset()
	h.ensemble.Partition(cut)
	return func() { h.ensemble.Heal(cut) }
}

func (h harness) Hold(s driver.Session) (release func(), ok bool) {
	return memcontrol.Of(h.ensemble).HoldReplies(s.ID()), true
}

func (h harness) Stale(s driver.Session, change func()) (heal func(), ok bool) {
	return corekit.Stale(h.ensemble, s, change)
}

func (h harness) Reaping() time.Duration { return 2 * reaping }

func (h harness) Parallel() bool { return false }

// flawed is a connector with one flaw.
type flawed struct {
	driver.Connector
	flaw flaw
}

func (c flawed) Unwrap() driver.Connector { return c.Connector }

func (c flawed) CloseSession(ctx context.Context, cred driver.Credentials) error {
	closer, _ := driver.CloserOf(c.Connector)
	if end := endings[c.flaw.name]; end != nil {
		return end(ctx, closer, cred)
	}
	return closer.CloseSession(ctx, cred)
}

func (c flawed) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	if err != nil || c.flaw.wrap == nil {
		return s, err
	}
	return c.flaw.wrap(s, c.Connector, timeout), nil
}

// modest is a harness that declares none of the optional capabilities.
type modest struct{ drivertest.Harness }

func (modest) Authenticated() (driver.Connector, bool) { return nil, false }

func (modest) Hold(driver.Session) (release func(), ok bool) { return nil, false }

func (modest) Reaping() time.Duration { return 0 }

func TestSuitePassesWithoutCapabilities(t *testing.T) {
	drivertest.RunSynctest(t, func(t *testing.T) drivertest.Harness { return modest{newHarness(flaw{})(t)} })
}
