package faultdriver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Wrap returns a connector whose sessions are those of c, with the faults that inj returns. A
// nil inj injects no faults. Closing the connector closes c.
//
// The connector and its sessions have a method Unwrap, which returns the wrapped connector or
// session.
func Wrap(c driver.Connector, inj Injector) driver.Connector {
	if inj == nil {
		inj = None()
	}
	return &connector{Connector: c, faults: &faults{inj: inj}}
}

func init() { faultcontrol.Provide(control) }

// control is faultcontrol.Control.
func control(c driver.Connector, decide func(Op) Fault) driver.Connector {
	return &connector{Connector: c, faults: &faults{decide: decide}}
}

// faults numbers the operations of one Wrap and asks its injector about them.
type faults struct {
	inj    Injector // nil if decide is not
	decide func(Op) Fault

	mu  sync.Mutex
	seq uint64 // guarded by mu; operations so far
}

// strike returns op with its numbers, and the fault that strikes it. It holds the mutex while
// it asks the injector. So the injector gets the operations in the order of their numbers, and
// what it counts and what a Log lists have the same order.
func (f *faults) strike(op Op, attempt func(Op) int) (Op, Fault) {
	f.mu.Lock()
	f.seq++
	op.Seq, op.Attempt = f.seq, attempt(op)
	if f.decide != nil {
		f.mu.Unlock()
		return op, f.decide(op).on(op.Kind)
	}
	defer f.mu.Unlock()
	return op, f.inj.Inject(op).on(op.Kind)
}

// connector is a driver.Connector with faults. The methods that are not defined here are
// those of the wrapped connector.
type connector struct {
	driver.Connector

	faults *faults
	tries  attempts
}

var _ driver.Connector = (*connector)(nil)

// Unwrap returns the wrapped connector.
func (c *connector) Unwrap() driver.Connector { return c.Connector }

func (c *connector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	op, fault := c.faults.strike(Op{Kind: Connect}, c.tries.next)
	// The session does not exist yet, so its end cannot end a wait.
	s, err := carry(ctx, op, fault, nil, func(ctx context.Context) (driver.Session, error) {
		return c.Connector.Connect(ctx, timeout)
	}, func(s driver.Session) {
		// The caller does not get this session, so only this function can end it.
		_ = s.Close(context.WithoutCancel(ctx))
	})
	if err != nil {
		return nil, err
	}
	return newSession(s, c.faults), nil
}

// attempts counts operations with the same kind and the same paths.
type attempts struct {
	mu    sync.Mutex
	count map[string]int // guarded by mu; by kind and paths
}

// next returns the number of this attempt at op, from 1 on.
func (a *attempts) next(op Op) int {
	// No path contains a NUL.
	key := op.Kind.String() + "\x00" + strings.Join(op.Paths, "\x00")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == nil {
		a.count = make(map[string]int)
	}
	a.count[key]++
	return a.count[key]
}
