package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/zklock"
)

// Deadlocks returns the deadlocks that exist at a moment of the call: see [zklock.Client.Deadlocks].
func Deadlocks(ctx context.Context, c *zklock.Client) ([]*zklock.DeadlockError, error) {
	found, err := c.Deadlocks(ctx)
	if err != nil {
		return nil, fmt.Errorf("it is not known whether there is a deadlock: %w", err)
	}
	return found, nil
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
