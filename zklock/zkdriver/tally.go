package zkdriver

import "sync"

// tally counts connections by server.
type tally struct {
	mu sync.Mutex
	by map[string]int // guarded by mu
}

// established has the connections of this process that are of use. It is one for
// the process, and not one for each connector, because a server's maxClientCnxns is
// a limit on all connections from one address.
var established tally

// add counts n connections in, or out.
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

// of returns how many connections there are to a server.
func (t *tally) of(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[server]
}
