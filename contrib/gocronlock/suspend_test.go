package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// runSuspended is a process that leads, and asks whether it leads when it has lost its lock.
func runSuspended(m *fleet.Member) error {
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	elector := gocronlock.NewElector(election.New(client, "cron"))
	defer elector.Close()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for elector.IsLeader(context.Background()) != nil {
		<-look.C
	}
	var leads bool
	err = elector.Do(context.Background(), func(ctx context.Context) error {
		held, _ := zklock.FromContext(ctx)
		m.HoldsOn(held)
		leads = elector.IsLeader(ctx) == nil
		return nil
	})
	m.Say("after", fmt.Sprintf("leads: %v, loss: %v", leads, errors.Is(err, zklock.ErrLost)))
	return nil
}

// A process that was stopped until another one got the lock does not lead, and Do returns the loss,
// though nothing has reported the loss to it yet.
func TestElectorAfterSuspension(t *testing.T) {
	ensemble.Require(t)
	address := ensemble.Start(t, ensemble.Config{}).URL("/suspended", fleet.ShortSession())
	p := fleet.Start(t, "suspend", address)
	p.Expect("holds")
	p.Suspend(address, "cron")
	if got := p.Expect("after"); got != "leads: false, loss: true" {
		t.Errorf("after the loss the process says %q, want that it does not lead, and that Do returned the loss", got)
	}
}
