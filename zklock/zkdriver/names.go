package zkdriver

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/netcontrol"
)

const (
	// lookupWait is how long an attempt waits for lookups, if the address of any server is known.
	lookupWait = 250 * time.Millisecond

	// firstLookupWait is the same if none is. The lookups go on after that.
	firstLookupWait = time.Second

	// lookupLimit bounds a lookup, and lookupPause is the time from the beginning of one to the next of the same name.
	lookupLimit = 10 * time.Second
	lookupPause = 500 * time.Millisecond
)

// names finds the servers of a URL. A name may have several addresses, as that of a headless service has. Then each
// address is a server: it gets attempts, questions and blame of its own. Such a server is called by its address, and
// one that is the only one of its name by the name.
//
// While a lookup fails or takes long, the addresses of the last one that worked are used. All sessions of a
// connector share names.
type names struct {
	servers []string                                                 // of the URL, as host:port; immutable
	lookup  func(ctx context.Context, host string) ([]string, error) // immutable

	mu      sync.Mutex
	known   map[string][]string      // addresses with ports, by server of the URL; guarded by mu
	of      map[string]string        // the server of the URL, by address; guarded by mu
	looking map[string]chan struct{} // closed at the end of the lookup of a server of the URL; guarded by mu
	looked  map[string]time.Time     // when its newest lookup began; guarded by mu
}

func newNames(servers []string, network netcontrol.Network) *names {
	n := &names{
		servers: servers, lookup: net.DefaultResolver.LookupHost,
		known: make(map[string][]string), of: make(map[string]string),
		looking: make(map[string]chan struct{}), looked: make(map[string]time.Time),
	}
	if network != nil {
		n.lookup = network.LookupHost
	}
	return n
}

// all returns all servers, each once. Before that it looks names up, and waits a little for the answers: less if there are
// servers with known addresses. Lookups run on goroutines of wg, and end with life.
func (n *names) all(life context.Context, wg *sync.WaitGroup) []string {
	var under []<-chan struct{}
	wait := firstLookupWait
	for _, server := range n.servers {
		done, known := n.look(life, wg, server)
		if known {
			wait = lookupWait
		}
		if done != nil {
			under = append(under, done)
		}
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for _, done := range under {
		select {
		case <-done:
			continue
		case <-limit.C:
		case <-life.Done():
		}
		break
	}
	return n.now()
}

// refresh begins the lookups that are due, and does not wait for them.
func (n *names) refresh(life context.Context, wg *sync.WaitGroup) {
	for _, server := range n.servers {
		n.look(life, wg, server)
	}
}

// look begins a lookup, unless the server of the URL is an address or was looked up just now. It returns a channel that is closed
// at the end of the lookup that is under way, and whether addresses are known already.
func (n *names) look(life context.Context, wg *sync.WaitGroup, server string) (done <-chan struct{}, known bool) {
	host, port, _ := net.SplitHostPort(server)
	if _, err := netip.ParseAddr(host); err == nil {
		return nil, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known = len(n.known[server]) > 0
	if under := n.looking[server]; under != nil {
		return under, known
	}
	if at, ok := n.looked[server]; ok && time.Since(at) < lookupPause {
		return nil, known
	}
	end := make(chan struct{})
	n.looking[server], n.looked[server] = end, time.Now()
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(life, lookupLimit)
		defer cancel()
		found, err := n.lookup(ctx, host)
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.looking, server); err == nil && len(found) > 0 {
			for _, a := range n.known[server] {
				delete(n.of, a)
			}
			n.known[server] = nil
			for _, a := range found {
				if a = net.JoinHostPort(a, port); !slices.Contains(n.known[server], a) {
					n.known[server] = append(n.known[server], a)
					n.of[a] = server
				}
			}
		}
		close(end)
	})
	return end, known
}

// now returns all servers as far as they are known, each once.
func (n *names) now() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, server := range n.servers {
		found := n.known[server]
		if len(found) < 2 {
			found = []string{server}
		}
		for _, s := range found {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// address returns the address of a server; the server itself if it has none yet.
func (n *names) address(server string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := n.known[server]; len(found) == 1 {
		return found[0]
	}
	return server
}

// name returns the server of the URL that a server belongs to. Certificates and tickets are for the names in the URL.
func (n *names) name(server string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.of[server]; ok {
		return name
	}
	return server
}
