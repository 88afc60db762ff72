package zkdriver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

// hosts decides which server the client tries next. It implements zk.HostProvider.
// Unlike the client's own implementation it keeps names, which the dialer resolves
// each time. It never makes the client pause while the session lives: the dialer
// pauses instead, and the dialer's pause can be interrupted.
//
// It has no mutex: only the client's loop calls it.
type hosts struct {
	servers []string // in the order in which they are tried
	next    int
	life    context.Context // ends when the session needs no more connections

	parked chan struct{} // closed when the client was made to pause
	pause  sync.Once     // closes parked
}

// newHosts shuffles the servers, so that many processes spread over them.
func newHosts(life context.Context, servers []string) *hosts {
	h := &hosts{servers: slices.Clone(servers), life: life, parked: make(chan struct{})}
	rand.Shuffle(len(h.servers), func(i, j int) {
		h.servers[i], h.servers[j] = h.servers[j], h.servers[i]
	})
	return h
}

// Init implements zk.HostProvider. The servers are known already.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. It is called while one of the client's locks is
// held, and never blocks. retryStart makes the client pause for one second, in which
// it fails its queued requests and notices whether it was closed. That is wanted once
// the session is over, and never before.
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
