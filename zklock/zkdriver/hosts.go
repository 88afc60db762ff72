package zkdriver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

// hosts tells the client which server to try next. It implements
// zk.HostProvider. Unlike the client's own it keeps names, which the dialer
// resolves each time, and never makes the client pause: the dialer does that,
// and can be woken.
//
// It has no lock: only the client's loop calls it.
type hosts struct {
	servers []string // in the order to try
	next    int
	life    context.Context // ends when the session wants no connection any more

	parked chan struct{} // closed when the client was made to pause
	pause  sync.Once     // closes parked
}

// newHosts shuffles the servers, so that a fleet spreads over them.
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

// Next implements zk.HostProvider. It is called with one of the client's locks
// held and never blocks. retryStart makes the client fail what it has queued,
// and look whether it was closed, in a pause of one second: that is wanted
// when the session is over, and never before.
func (h *hosts) Next() (server string, retryStart bool) {
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	if h.life.Err() == nil {
		return server, false
	}
	h.pause.Do(func() { close(h.parked) })
	return server, true
}

// Connected implements zk.HostProvider. After a loss the next server in the
// list is tried first, the lost one last.
func (h *hosts) Connected() {}
