package memdriver

import (
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
)

// Defaults of the options. Where a ZooKeeper installation has a default, it is the
// same.
const (
	// defaultTickTime is the value in ZooKeeper's sample configuration. Session
	// timeouts are then between 4 s and 40 s.
	defaultTickTime = 2 * time.Second

	// defaultSyncLimit is how many ticks a follower may be without contact to its
	// leader.
	defaultSyncLimit = 5

	// defaultReapInterval is how often the leader looks for empty containers.
	defaultReapInterval = time.Minute

	// electionTime is how long a server without a leader looks before it votes. A
	// real election waits 200 ms for better votes to arrive.
	electionTime = 200 * time.Millisecond

	// restartTime is how long a server that is restarted is down.
	restartTime = time.Second
)

type config struct {
	servers      int
	tick         time.Duration
	syncLimit    int
	reapInterval time.Duration
	latency      time.Duration
	journal      func(memcontrol.Transaction) // nil: no journal
}

// Option is a setting of an [Ensemble]. Make one with the With functions.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// WithServers sets the number of servers, from 1 to 63. The default is 1.
func WithServers(n int) Option {
	return optionFunc(func(c *config) { c.servers = min(max(n, 1), 63) })
}

// WithTickTime sets the servers' tickTime, 2 s by default. Session timeouts are
// limited to between 2 and 20 ticks, sessions expire at whole ticks, and the leader
// pings its followers every half tick.
func WithTickTime(d time.Duration) Option {
	return optionFunc(func(c *config) { c.tick = max(d, 2*time.Millisecond) })
}

// WithSyncLimit sets after how many ticks without contact a follower and its leader
// give each other up; 5 by default.
func WithSyncLimit(ticks int) Option {
	return optionFunc(func(c *config) { c.syncLimit = max(ticks, 1) })
}

// WithReapInterval sets how often the leader removes containers that have lost their last
// child; every minute by default.
func WithReapInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.reapInterval = max(d, time.Millisecond) })
}

// WithLatency sets how long a message takes one way from one process to another:
// between client and server, and between follower and leader. The default is 0.
func WithLatency(d time.Duration) Option {
	return optionFunc(func(c *config) { c.latency = max(d, 0) })
}
