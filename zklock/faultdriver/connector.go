package faultdriver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Wrap makes a connector whose sessions are those of c, with the faults that
// inj decides on. A nil inj injects none. Closing the connector closes c.
//
// The connector and its sessions have a method Unwrap, which returns what they
// wrap; see also [Unwrap].
func Wrap(c driver.Connector, inj Injector) driver.Connector {
	if inj == nil {
		inj = None()
	}
	return &connector{Connector: c, faults: &faults{inj: inj}}
}

// Control is Wrap for a controller that decides when each operation goes on, and
// not only how. decide is called in the goroutine of the operation, before it is
// carried out, with no lock held and for several operations at a time: it may
// block for as long as it likes.
func Control(c driver.Connector, decide func(Op) Fault) driver.Connector {
	return &connector{Connector: c, faults: &faults{decide: decide}}
}

// Unwrap returns the session underneath s, below all that was wrapped around
// it, and s itself if it is not wrapped.
func Unwrap(s driver.Session) driver.Session {
	for {
		w, ok := s.(interface{ Unwrap() driver.Session })
		if !ok {
			return s
		}
		s = w.Unwrap()
	}
}

// faults numbers the operations of one Wrap and asks its injector about them.
type faults struct {
	inj    Injector // nil if decide is not
	decide func(Op) Fault

	mu  sync.Mutex
	seq uint64 // guarded by mu; operations so far
}

// strike asks what is to go wrong with op. The lock is held while the injector
// is asked: it sees operations in the order of their numbers, so that what it
// counts, and what a log lists, is one order and not several.
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

// connector is a driver.Connector with faults; what is not wrapped here is the
// connector's underneath.
type connector struct {
	driver.Connector

	faults *faults
	tries  attempts
}

var _ driver.Connector = (*connector)(nil)

// Unwrap returns the connector underneath.
func (c *connector) Unwrap() driver.Connector { return c.Connector }

func (c *connector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	op, fault := c.faults.strike(Op{Kind: Connect}, c.tries.next)
	// A connect has no session yet whose end could end a wait.
	s, err := carry(ctx, op, fault, nil, func(ctx context.Context) (driver.Session, error) {
		return c.Connector.Connect(ctx, timeout)
	}, func(s driver.Session) {
		// The caller never gets to see it, so nobody else can end it.
		_ = s.Close(context.WithoutCancel(ctx))
	})
	if err != nil {
		return nil, err
	}
	return newSession(s, c.faults), nil
}

// attempts counts operations that are alike.
type attempts struct {
	mu    sync.Mutex
	count map[string]int // guarded by mu; by kind and paths
}

// next is the number of this attempt at op, from 1 on.
func (a *attempts) next(op Op) int {
	// NUL can be in no path.
	key := op.Kind.String() + "\x00" + strings.Join(op.Paths, "\x00")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == nil {
		a.count = make(map[string]int)
	}
	a.count[key]++
	return a.count[key]
}
