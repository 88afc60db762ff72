package memdriver

import "time"

// Defaults of the options, those of a ZooKeeper installation where it has any.
const (
	// defaultTickTime is what ZooKeeper's sample configuration says. Session
	// timeouts are then between 4 s and 40 s.
	defaultTickTime = 2 * time.Second

	// defaultSyncLimit is how many ticks a follower may be out of touch.
	defaultSyncLimit = 5

	// defaultReapInterval is how often the leader looks for empty containers.
	defaultReapInterval = time.Minute

	// electionTime is how long a server without a leader looks before it
	// votes; a real election waits 200 ms for better votes to come in.
	electionTime = 200 * time.Millisecond

	// restartTime is how long a server is gone that is restarted.
	restartTime = time.Second
)

type config struct {
	servers      int
	tick         time.Duration
	syncLimit    int
	reapInterval time.Duration
	latency      time.Duration
	journal      func(Transaction) // nil: none
}

// Option is a setting of an [Ensemble]. Make one with the With functions.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// WithServers sets how many servers the ensemble has, from 1, which is the
// default, to 63.
func WithServers(n int) Option {
	return optionFunc(func(c *config) { c.servers = min(max(n, 1), 63) })
}

// WithTickTime sets the servers' tickTime, 2 s by default. Session timeouts are
// clamped to between 2 and 20 ticks, sessions expire at whole ticks, and the
// leader pings its followers every half tick.
func WithTickTime(d time.Duration) Option {
	return optionFunc(func(c *config) { c.tick = max(d, 2*time.Millisecond) })
}

// WithSyncLimit sets how many ticks a follower and its leader go without
// hearing of each other before they give each other up; 5 by default.
func WithSyncLimit(ticks int) Option {
	return optionFunc(func(c *config) { c.syncLimit = max(ticks, 1) })
}

// WithReapInterval sets how often the leader removes containers that had
// children and have none any more; every minute by default.
func WithReapInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.reapInterval = max(d, time.Millisecond) })
}

// WithLatency sets how long a message takes from one process to another, one
// way: client to server, follower to leader, and back. None by default.
func WithLatency(d time.Duration) Option {
	return optionFunc(func(c *config) { c.latency = max(d, 0) })
}
