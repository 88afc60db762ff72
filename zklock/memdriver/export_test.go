package memdriver

import (
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Quiet reports whether nothing is scheduled and no timer is armed.
func (e *Ensemble) Quiet() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.clock.events) == 0 && e.clock.timer == nil
}

// Trees returns the tree that each server has applied.
func (e *Ensemble) Trees() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var trees []string
	for _, s := range e.servers {
		var b strings.Builder
		dumpNode(&b, s.tree.root, 0)
		trees = append(trees, b.String())
	}
	return trees
}

// Roles returns the role that each server believes to have.
func (e *Ensemble) Roles() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var roles []string
	for _, s := range e.servers {
		roles = append(roles, s.role.String())
	}
	return roles
}

// WatchChannels returns how many channels wait for events of a session's watches.
func WatchChannels(s driver.Session) (n int) {
	c := s.(*session)
	c.e.enter()
	defer c.e.leave()
	for _, list := range c.watches {
		n += len(list)
	}
	return n
}

// The controls of package memcontrol, in short for this package's tests.
type (
	Ops         = memcontrol.Ops
	Transaction = memcontrol.Transaction
	Change      = memcontrol.Change
	Driver      = urlDriver
)

func WithJournal(f func(Transaction)) Option {
	return optionFunc(func(c *config) { c.journal = f })
}

func (e *Ensemble) Ops() Ops                 { return controls{e}.Ops() }
func (e *Ensemble) WatchCount() int          { return controls{e}.WatchCount() }
func (e *Ensemble) Watched() map[string]int  { return controls{e}.Watched() }
func (e *Ensemble) Servers() []string        { return controls{e}.Servers() }
func (e *Ensemble) Delete(path string) error { return controls{e}.Delete(path) }
func (e *Ensemble) SetSequence(path string, next int32) error {
	return controls{e}.SetSequence(path, next)
}
func (e *Ensemble) Lag(server int, d time.Duration)        { controls{e}.Lag(server, d) }
func (e *Ensemble) MaxTimeout(server int, d time.Duration) { controls{e}.MaxTimeout(server, d) }
func (e *Ensemble) HoldReplies(id int64) func()            { return controls{e}.HoldReplies(id) }
func (e *Ensemble) HoldRequests(id int64) func()           { return controls{e}.HoldRequests(id) }
