package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/zklock"
)

// Register is what clients have registered of their waits, as far as it is of use to an operator.
type Register struct {
	Dead   []*zklock.DeadlockError
	Nested []zklock.NestedWait // of requests that have other locks: what these wait for
}

// ReadRegister reads the register at a moment of the call: the deadlocks, and the waits between some names, unless
// these have no waiter.
func ReadRegister(ctx context.Context, c *zklock.Client, locks []zklock.LockInfo) (r Register, err error) {
	if r.Dead, err = c.Deadlocks(ctx); err == nil && slices.ContainsFunc(locks, awaited) {
		r.Nested, err = c.NestedWaits(ctx, locks)
	}
	if zklock.Reason(err) == "root_missing" { // so nothing waits
		return Register{}, nil
	}
	if err != nil {
		return Register{}, fmt.Errorf("it is not known whether there is a deadlock: %w", err)
	}
	return r, nil
}

// awaited reports whether a contender waits for a name, other than a candidate.
func awaited(l zklock.LockInfo) bool {
	return slices.ContainsFunc(l.Contenders, func(c zklock.Contender) bool { return !c.Held && !c.Candidacy })
}

// Within returns those of some deadlocks that have a wait that fits.
func Within(found []*zklock.DeadlockError, fits func(zklock.DeadlockLink) bool) []*zklock.DeadlockError {
	return slices.DeleteFunc(slices.Clone(found), func(d *zklock.DeadlockError) bool { return !slices.ContainsFunc(d.Cycle, fits) })
}

// Circles returns the lines that show some deadlocks.
func Circles(found []*zklock.DeadlockError) []Branch {
	f := &forest{seen: make(map[string]bool)}
	for _, d := range found {
		f.circle(d, 0)
	}
	return f.lines
}

// circle adds a deadlock, and below it each of its waits.
func (f *forest) circle(d *zklock.DeadlockError, depth int) {
	room := f.add(Branch{Depth: depth, Relation: Deadlock, Count: len(d.Cycle)})
	for i, l := range d.Cycle {
		f.seen[l.Held] = true
		c := Contender{Node: l.Node, Host: l.Host, PID: l.PID, Label: l.Label, Trace: l.Trace}
		room = room && f.add(Branch{Depth: depth + 1, Relation: Member, Name: l.Held, Waiting: l.Waiting, Contender: c, Ends: i == 0})
	}
}
