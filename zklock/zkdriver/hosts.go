package zkdriver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// hosts implements zk.HostProvider. It names no server: the dialer chooses them, see turns.
// And it never makes the client pause while the session lives: the dialer
// pauses instead, and the dialer's pause can be interrupted.
type hosts struct {
	life   context.Context // ends when the session needs no more connections
	parked chan struct{}   // closed when the client was made to pause
	pause  sync.Once       // closes parked
}

func newHosts(life context.Context) *hosts {
	return &hosts{life: life, parked: make(chan struct{})}
}

// firstServers decides the order of servers that each session of a connector tries. The order
// is random, so that many processes spread over the servers. But each session begins with
// another server than the one before it: a server that fails then takes only a part of a
// client's sessions.
type firstServers struct{ next atomic.Uint32 }

func newFirstServers() *firstServers {
	f := new(firstServers)
	f.next.Store(rand.Uint32())
	return f
}

// order returns the servers in the order for a new session.
func (f *firstServers) order(servers []string) []string {
	servers = slices.Clone(servers)
	first := f.next.Add(1) % uint32(len(servers))
	servers[0], servers[first] = servers[first], servers[0]
	others := servers[1:]
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return servers
}

// Init implements zk.HostProvider. The dialer knows the servers.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return 1 }

// Next implements zk.HostProvider. It is called while one of the client's locks is
// held, and never blocks. retryStart makes the client pause for one second. In the pause it
// fails its queued requests and notices whether it was closed. That is wanted once the session
// is over, and never before.
func (h *hosts) Next() (server string, retryStart bool) {
	if h.life.Err() == nil {
		return anyServer, false
	}
	h.pause.Do(func() { close(h.parked) })
	return anyServer, true
}

// anyServer is what the client calls each server.
const anyServer = "the server whose turn it is"

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {}
