package migratelock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
)

// suspended is a process that tries to change its database after it has lost its lock.
func suspended(m *fleet.Member) error {
	var held *zklock.Lock
	client, err := zklock.Open(m.Args[0], zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) { held = r.Lock }
		},
	}))
	if err != nil {
		return err
	}
	defer client.Close()
	inner := new(fake)
	d := migratelock.Wrap(inner, client.Mutex(migrations))
	if err := d.Lock(); err != nil {
		return err
	}
	m.HoldsOn(held)
	err = d.Run(strings.NewReader(""))
	m.Say("after", fmt.Sprintf("calls: %v, loss: %v", inner.calls, errors.Is(err, zklock.ErrLost)))
	return nil
}

// A process that was stopped until another one got the lock changes nothing, though nothing has
// reported the loss to it yet.
func TestRunAfterSuspension(t *testing.T) {
	ensemble.Require(t)
	address := ensemble.Start(t, ensemble.Config{}).URL("/suspended", fleet.ShortSession())
	p := fleet.Start(t, "suspended", address)
	p.Expect("holds")
	p.Suspend(address, migrations)
	if got := p.Expect("after"); got != "calls: [lock], loss: true" {
		t.Errorf("after the loss the process says %q, want no call of Run, and the loss", got)
	}
}
