package zkdriver

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// turns decides which server a session tries next. The order stays, but for servers that come and go: after a connection
// is lost, the next server in the order is tried first, and the lost one last.
type turns struct {
	mu    sync.Mutex
	order []string // each server once; never empty; guarded by mu
	next  int      // guarded by mu
}

// all returns the servers in their order.
func (t *turns) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.order)
}

// turn returns the next server of those that there are now.
func (t *turns) turn(now []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var order []string
	next := 0
	for i, server := range t.order {
		if slices.Contains(now, server) {
			if order = append(order, server); i < t.next {
				next++
			}
		}
	}
	rand.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
	for _, server := range now {
		if !slices.Contains(order, server) {
			order = append(order, server)
		}
	}
	t.order = order
	server := order[next%len(order)]
	t.next = next%len(order) + 1
	return server
}
