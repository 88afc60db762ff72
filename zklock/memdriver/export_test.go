package memdriver

import (
	"strings"

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
