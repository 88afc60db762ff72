package zkdriver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// hosts decides which server the client tries next. It implements zk.HostProvider.
// Unlike the client's own implementation it keeps names, which the dialer resolves
// each time. It never makes the client pause while the session lives: the dialer
// pauses instead, and the dialer's pause can be interrupted.
//
// It has no mutex: only the client's loop calls it.
type hosts struct {
	servers []string // in the order of the attempts
	next    int
	life    context.Context // ends when the session needs no more connections

	parked chan struct{} // closed when the client was made to pause
	pause  sync.Once     // closes parked
}

func newHosts(life context.Context, servers []string) *hosts {
	return &hosts{servers: servers, life: life, parked: make(chan struct{})}
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

// Init implements zk.HostProvider. The servers are known already.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. It is called while one of the client's locks is
// held, and never blocks. retryStart makes the client pause for one second. In the pause it
// fails its queued requests and notices whether it was closed. That is wanted once the session
// is over, and never before.
func (h *hosts) Next() (server string, retryStart bool) {
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	if h.life.Err() == nil {
		return server, false
	}
	h.pause.Do(func() { close(h.parked) })
	return server, true
}

// Connected implements zk.HostProvider. After a connection is lost, the next server
// in the list is tried first, and the lost one last.
func (h *hosts) Connected() {}
