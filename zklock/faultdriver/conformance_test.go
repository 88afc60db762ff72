package faultdriver_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestConformance shows that a wrapped driver without faults passes the conformance suite.
func TestConformance(t *testing.T) {
	for name, inj := range map[string]func() faultdriver.Injector{
		"nil":  func() faultdriver.Injector { return nil },
		"none": func() faultdriver.Injector { return faultdriver.None() },
		"off": func() faultdriver.Injector {
			return faultdriver.NewToggle(faultdriver.Random(1, 1, faultdriver.Drop(), faultdriver.Hang()))
		},
		// Faults that wait for no time at all: they use the code paths of real delays.
		"idle": func() faultdriver.Injector {
			return faultdriver.Any(faultdriver.On(faultdriver.Watch, faultdriver.DelayEvent(0)), faultdriver.On(faultdriver.Set, faultdriver.DelayReply(0)), faultdriver.Delay(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.RunSynctest(t, func(t *testing.T) drivertest.Harness {
				e := memdriver.New(memdriver.WithTickTime(tick), memdriver.WithReapInterval(reaping))
				t.Cleanup(func() { _ = e.Close() })
				return harness{e, inj}
			})
		})
	}
}

const (
	tick    = 500 * time.Millisecond
	reaping = 2 * time.Second
)

// harness is an ensemble in memory whose sessions have faults.
type harness struct {
	ensemble *memdriver.Ensemble
	faults   func() faultdriver.Injector
}

func (h harness) Connector() driver.Connector {
	return faultdriver.Wrap(h.ensemble.Connector(), h.faults())
}

func (h harness) Authenticated() (driver.Connector, bool) {
	return faultdriver.Wrap(h.ensemble.As("user", driver.NewSecret("password")), h.faults()), true
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
