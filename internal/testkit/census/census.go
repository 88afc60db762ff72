// Package census says under which settings a suite ran: the ledger of integration_test/record keeps them, so that a reader
// sees which suites have run with what users have. A suite that runs elsewhere prints the same line.
package census

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// AsShipped reports whether the tests are to run under the settings of a user that sets none, on servers with ZooKeeper's usual
// tick: the environment has ZKLOCK_SHIPPED.
func AsShipped() bool { return os.Getenv("ZKLOCK_SHIPPED") != "" }

// Settings are those of one run.
type Settings struct {
	Tick     time.Duration // tickTime of the servers
	Session  time.Duration // session_timeout of the clients
	Servers  int
	Distance time.Duration // between clients and servers, one way
	Clients  int           // each with sessions of its own
	Name     int           // bytes of a lock's name
}

// Census holds the least and the greatest settings of runs. Its zero value has none. Its methods are safe for concurrent use.
type Census struct {
	mu          sync.Mutex
	least, most Settings // guarded by mu
}

// Add adds the settings of a run.
func (c *Census) Add(s Settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == (Settings{}) {
		c.least, c.most = s, s
		return
	}
	c.least = Settings{min(c.least.Tick, s.Tick), min(c.least.Session, s.Session), min(c.least.Servers, s.Servers),
		min(c.least.Distance, s.Distance), min(c.least.Clients, s.Clients), min(c.least.Name, s.Name)}
	c.most = Settings{max(c.most.Tick, s.Tick), max(c.most.Session, s.Session), max(c.most.Servers, s.Servers),
		max(c.most.Distance, s.Distance), max(c.most.Clients, s.Clients), max(c.most.Name, s.Name)}
}

// String returns one line with one cell for each setting, in the order of the fields.
func (c *Census) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "settings: " + strings.Join([]string{
		span(c.least.Tick, c.most.Tick), span(c.least.Session, c.most.Session), span(c.least.Servers, c.most.Servers),
		span(c.least.Distance, c.most.Distance), span(c.least.Clients, c.most.Clients), span(c.least.Name, c.most.Name),
	}, " | ")
}

// span returns a range, or its only value.
func span[T comparable](least, most T) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%v to %v", least, most)
}

// At returns a census of one run whose clients were at a distance.
func (c *Census) At(distance time.Duration) *Census {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least.Distance, c.most.Distance = distance, distance
	return c
}

// Of returns the census of one run.
func Of(s Settings) *Census { return &Census{least: s, most: s} }
