// Package wire has a network in memory whose servers speak ZooKeeper's protocol for a memdriver
// ensemble. Everything in it waits on channels and timers only. So go-zookeeper and package zkdriver
// run over it in virtual time, in a bubble of package testing/synctest.
//
//	e := memdriver.New(memdriver.WithServers(3))
//	n := wire.New(e)
//	defer e.Close()
//	defer n.Close()
//	connector := n.Connector("") // of zkdriver
//
// The faults of the ensemble, such as a Partition around a session, apply to these connections, too.
// Those that only a wire has are methods of Network and Conn.
package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/netcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// Network has the servers of an ensemble, at 10.0.0.1:2181, 10.0.0.2:2181 and so on.
type Network struct {
	control memcontrol.Controls
	rest    func()
	serving sync.WaitGroup
	tls     *tls.Config // see Encrypt
	ca      string

	user, password string // see Authenticate

	mu     sync.Mutex
	rng    *rand.Rand        // guarded by mu
	hosts  []*host           // their fields are guarded by mu
	conns  []*Conn           // guarded by mu; in the order in which they were made
	names  map[string]name   // guarded by mu
	opened map[int64]*client // guarded by mu; by session
	dead   map[int64]bool    // guarded by mu; sessions of which a server has said that they have expired
	ports  uint16            // guarded by mu; the newest client's
	next   func() int        // guarded by mu; see Balance
	idle   time.Duration     // guarded by mu; see Idle
	torn   bool              // guarded by mu; frames arrive in pieces
	closed bool              // guarded by mu
}

// host is a server's machine.
type host struct {
	index              int
	up, down, jitter   time.Duration
	late               time.Duration
	gone, stopped, off bool
	stops              map[Stage]bool
	script             func(net.Conn)
	limit              int         // the connections that it has no room for begin with this number; 0: it has room for all
	full               int         // connections that were closed because of the limit
	arrivals           []time.Time // of connections
	asked              int         // connections that asked for the server's status
}

// name is a name in DNS.
type name struct {
	addrs []string
	takes time.Duration
	err   error
}

// client is a client's machine.
type client struct{ *Network }

var _ netcontrol.Network = (*client)(nil)

// New makes a network with all servers of an ensemble. Close it before the ensemble.
func New(e *memdriver.Ensemble) *Network {
	n := &Network{control: memcontrol.Of(e), rng: rand.New(rand.NewPCG(1, 1)), names: make(map[string]name), opened: make(map[int64]*client), dead: make(map[int64]bool)}
	for i := range n.control.Servers() {
		n.hosts = append(n.hosts, &host{index: i, stops: make(map[Stage]bool)})
	}
	n.rest = n.control.Open()
	return n
}

// Close ends all connections, and waits for the servers' halves.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	conns := slices.Clone(n.conns)
	n.mu.Unlock()
	for _, c := range conns {
		c.Reset()
	}
	n.serving.Wait()
	n.rest()
}

// URL returns a URL of this network, for a client machine of its own: of all servers if no host is given.
func (n *Network) URL(hosts ...string) driver.URL {
	if len(hosts) == 0 {
		for i := range n.hosts {
			hosts = append(hosts, Addr(i))
		}
	}
	u := driver.URL{Scheme: "zk", Hosts: hosts, Options: []any{&client{n}}, Params: url.Values{}}
	if n.tls != nil {
		u.Scheme = "zks"
		u.Params.Set("tls_ca", n.ca)
	}
	return u
}

// Connector opens a connector of zkdriver, which authenticates if user is not "", and as the user of Authenticate, if there is one. It panics if zkdriver
// refuses the hosts.
func (n *Network) Connector(user string, hosts ...string) driver.Connector {
	u := n.URL(hosts...)
	switch {
	case n.user != "":
		u.User, u.Password = n.user, driver.NewSecret(n.password)
		u.Params.Set("sasl", "digest-md5")
	case user != "":
		u.User, u.Password = user, driver.NewSecret("open sesame")
		u.Params.Set("auth_plaintext", "true")
	}
	c, err := zkdriver.Driver{}.OpenConnector(u)
	if err != nil {
		panic(err)
	}
	return c
}

// Addr returns the address of a server.
func Addr(server int) string { return address(server).String() }

func address(server int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(server + 1)}), 2181)
}

// address6 is another address of the same server.
func address6(server int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(server + 1)}), 2181)
}

// Addr6 returns the address of a server's machine in version 6 of the protocol, without a port.
func Addr6(server int) string { return address6(server).Addr().String() }

// LookupHost implements netcontrol.Network.
func (n *Network) LookupHost(ctx context.Context, host string) ([]string, error) {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}, nil
	}
	n.mu.Lock()
	found, ok := n.names[host]
	n.mu.Unlock()
	if err := sleep(ctx, found.takes); err != nil {
		return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
	}
	switch {
	case !ok:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case found.err != nil:
		return nil, &net.DNSError{Err: found.err.Error(), Name: host, IsTemporary: true}
	}
	return slices.Clone(found.addrs), nil
}

// DialContext implements netcontrol.Network. It tries the addresses of a name in order, as net.Dialer
// does, each for its part of the time.
func (n *client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := n.LookupHost(ctx, host)
	for i, addr := range addrs {
		part, cancel := ctx, context.CancelFunc(func() {})
		if until, ok := ctx.Deadline(); ok {
			part, cancel = context.WithTimeout(ctx, max(time.Until(until)/time.Duration(len(addrs)-i), 2*time.Second))
		}
		var c net.Conn
		c, err = n.dial(part, net.JoinHostPort(addr, port))
		cancel()
		if err == nil {
			return c, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: err}
}

// dial connects to one server.
func (n *client) dial(ctx context.Context, addr string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	if at == balancer {
		return n.pass(ctx)
	}
	i := slices.IndexFunc(n.hosts, func(h *host) bool { return address(h.index) == at || address6(h.index) == at })
	for {
		var h *host
		hangs, refused, trip := true, false, time.Second // a packet without an answer is sent again
		if i >= 0 {
			h = n.hosts[i]
			_, hangs, refused = n.control.Server(i)
			n.mu.Lock()
			hangs = (hangs && !h.stopped && !refused || h.gone) && !n.closed
			refused = refused || h.off || n.closed
			n.mu.Unlock()
		}
		if !hangs {
			trip = n.travel(h, true) + n.travel(h, false)
		}
		if err := sleep(ctx, trip); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = os.ErrDeadlineExceeded
			}
			return nil, err
		}
		switch {
		case hangs:
		case refused:
			return nil, syscall.ECONNREFUSED
		default:
			return n.connect(h, at, nil)
		}
	}
}

// connect makes a connection to an address, whose server's half runs; script, if not nil, in its place.
func (n *client) connect(h *host, at netip.AddrPort, script func(net.Conn)) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, syscall.ECONNREFUSED
	}
	if h.limit > 0 && n.countLocked(h) >= h.limit-1 {
		h.full++
		script = shut
	}
	n.ports++
	local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("10.0.1.1"), n.ports))
	remote := net.TCPAddrFromAddrPort(at)
	up := &stream{net: n.Network, host: h, up: true, wake: make(chan struct{}, 1)}
	down := &stream{net: n.Network, host: h, wake: make(chan struct{}, 1)}
	c := &Conn{net: n.Network, from: n, host: h, script: script,
		client: &end{in: down, out: up, local: local, remote: remote, proxied: at == balancer},
		server: &end{in: up, out: down, local: remote, remote: local}}
	n.conns = append(n.conns, c)
	h.arrivals = append(h.arrivals, time.Now())
	n.serving.Go(c.serve)
	return c.client, nil
}

// foreign reports whether another client has opened a session.
func (n *client) foreign(session int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	opener := n.opened[session]
	return opener != nil && opener != n
}

// welcome records the answer to a handshake for a session; opened is 0 if it has expired.
func (n *client) welcome(session, opened int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if opened == 0 {
		n.dead[session] = true
		return
	}
	if n.opened[opened] == nil {
		n.opened[opened] = n
	}
}

// forget drops a connection that the server has closed.
func (n *Network) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = slices.DeleteFunc(n.conns, func(other *Conn) bool { return other == c })
}

// sleep waits for a time, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// travel returns how long a packet is under way.
func (n *Network) travel(h *host, up bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := h.down
	if up {
		d = h.up
	}
	if h.jitter > 0 {
		d += time.Duration(n.rng.Int64N(int64(h.jitter)))
	}
	return d
}

// late returns how much later a server answers handshakes.
func (n *Network) late(h *host) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return h.late
}

// pieces returns the lengths of the pieces in which a frame arrives.
func (n *Network) pieces(length int) (all []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.torn && length > 1 && len(all) < 3 {
		piece := 1 + n.rng.IntN(length-1)
		all, length = append(all, piece), length-piece
	}
	if length > 0 {
		all = append(all, length)
	}
	return all
}
