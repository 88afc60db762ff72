package zkdriver

import "sync"

// tally counts connections by server.
type tally struct {
	mu sync.Mutex
	by map[string]int // guarded by mu
}

// established counts this process's connections with a completed handshake. It is
// shared by all connectors, because a server's maxClientCnxns limits all connections
// from one address.
var established tally

// add adds n connections to a server's count; n is negative for lost ones.
func (t *tally) add(server string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = make(map[string]int)
	}
	if t.by[server] += n; t.by[server] == 0 {
		delete(t.by, server)
	}
}

// of returns how many connections to a server there are.
func (t *tally) of(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[server]
}
