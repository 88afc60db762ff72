package wire

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// Stage is a message of a handshake.
type Stage int

// At these stages a server can stop answering.
const (
	TLSHello  Stage = iota // of the TLS handshake
	Hello                  // of ZooKeeper's
	SASLHello              // the server's challenge comes, and its proof does not
)

// Strike is when a connection breaks.
type Strike int

// A connection can break before a request is executed, or after it, before the reply. Or no reply comes.
const (
	BeforeRequest Strike = iota + 1
	BeforeReply
	NoReply // the connection stays, and pings alone are answered
)

// Direction is one of a connection.
type Direction bool

// The two directions: to the server, and to the client.
const (
	Up   Direction = true
	Down Direction = false
)

// errName is the error of a name server.
var errName = errors.New("server misbehaving")

// Name gives a name the addresses of servers. Lookups take a time, and fail if there are no servers.
func (n *Network) Name(host string, takes time.Duration, servers ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := name{takes: takes}
	if len(servers) == 0 {
		found.err = errName
	}
	for _, i := range servers {
		addr := Addr(i)
		found.addrs = append(found.addrs, addr[:len(addr)-len(":2181")])
	}
	n.names[host] = found
}

// Resolve gives a name any addresses: those of servers, Addr6 among them, or others, at which no machine is. Without any,
// the answer is empty.
func (n *Network) Resolve(host string, takes time.Duration, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[host] = name{takes: takes, addrs: addrs}
}

// Unname makes the name server know nothing of a name.
func (n *Network) Unname(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.names, host)
}

// Seed makes the network's random choices those of a seed.
func (n *Network) Seed(seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rng = rand.New(rand.NewPCG(seed, 1))
}

// Script has f answer the connections to a server, in place of the ensemble. A connection ends when f returns.
func (n *Network) Script(server int, f func(c net.Conn)) {
	n.change(server, func(h *host) { h.script = f })
}

// Authenticate makes the servers authenticate a user with the SASL mechanism DIGEST-MD5. Without it they stop at SASLHello.
func (n *Network) Authenticate(user, password string) { n.user, n.password = user, password }

// Tear makes frames arrive in pieces, or ends that.
func (n *Network) Tear(torn bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.torn = torn
}

// Distance sets how long packets to and from a server take.
func (n *Network) Distance(server int, up, down, jitter time.Duration) {
	n.change(server, func(h *host) { h.up, h.down, h.jitter = up, down, jitter })
}

// Gone makes new connections to a server's machine hang, or ends that.
func (n *Network) Gone(server int, gone bool) {
	n.change(server, func(h *host) { h.gone = gone })
}

// Stopped makes the machine of a server that the ensemble has cut off from its clients accept
// connections for it, as that of a process that is stopped, or ends that.
func (n *Network) Stopped(server int, stopped bool) {
	n.change(server, func(h *host) { h.stopped = stopped })
}

// Arrivals returns when each connection to a server was made, and how many of them asked for its status only.
func (n *Network) Arrivals(server int) (at []time.Time, asked int) {
	n.change(server, func(h *host) { at, asked = slices.Clone(h.arrivals), h.asked })
	return at, asked
}

// Off makes a server refuse new connections, or ends that.
func (n *Network) Off(server int, off bool) {
	n.change(server, func(h *host) { h.off = off })
}

// Stop makes a server answer nothing from a stage of the handshake on, on new connections, or ends that.
func (n *Network) Stop(server int, stage Stage, stop bool) {
	n.change(server, func(h *host) { h.stops[stage] = stop })
}

// Late delays a server's answers to handshakes, and what it sends behind them.
func (n *Network) Late(server int, d time.Duration) {
	n.change(server, func(h *host) { h.late = d })
}

func (n *Network) change(server int, f func(h *host)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.hosts[server])
}

// at reports whether a server stops at a stage.
func (n *Network) at(h *host, stage Stage) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return h.stops[stage]
}

// Of returns the newest connection of a session; nil if it has none.
func (n *Network) Of(session int64) *Conn {
	n.mu.Lock()
	conns := slices.Clone(n.conns)
	n.mu.Unlock()
	for _, c := range slices.Backward(conns) {
		if c.Session() == session && !c.over() {
			return c
		}
	}
	return nil
}

// Session returns the id of the session; 0 if it is not known yet.
func (c *Conn) Session() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Refused reports whether a server has said of a session that it has expired. A leader says that as soon
// as it proposes the session's end; if it is deposed, its successor may not know of that.
func (n *Network) Refused(session int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead[session]
}

// Heard returns when the client's part of the handshake arrived.
func (c *Conn) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// over reports whether an end was closed.
func (c *Conn) over() bool {
	for _, s := range []*stream{c.client.in, c.server.in} {
		s.mu.Lock()
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return true
		}
	}
	return false
}

// Forget has a firewall drop the packets of these directions from now on. If it drops those to the client, it drops the
// acknowledgements of what arrives at the server, too. On a connection to a balancer it does so behind the balancer.
func (c *Conn) Forget(directions ...Direction) {
	for _, d := range directions {
		c.Silence(d)
		if d == Down {
			c.client.mu.Lock()
			c.client.unheard = true
			c.client.mu.Unlock()
		}
	}
}

// Silence stops one direction until lift is called. The ends hear nothing of that.
func (c *Conn) Silence(d Direction) (lift func()) { return c.stream(d).silence() }

// Halve lets half of the next frame through, and nothing behind it until lift is called.
func (c *Conn) Halve(d Direction) (lift func()) {
	s := c.stream(d)
	release := func() {}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halve = func() { release = s.silenceLocked() }
	return func() {
		s.mu.Lock()
		s.halve = nil
		lift := release
		s.mu.Unlock()
		lift()
	}
}

// Strike strikes the connection at its next request other than a ping.
func (c *Conn) Strike(when Strike) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strike = when
}

// At calls f at the next request other than a ping, before it is executed or before its reply is sent. Then the server
// goes on. f must not block.
func (c *Conn) At(when Strike, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strike, c.struck = when, f
}

// hit breaks the connection, or does what At says. It reports whether the connection lives.
func (c *Conn) hit() bool {
	c.mu.Lock()
	f := c.struck
	if f != nil {
		c.strike, c.struck = 0, nil
	}
	c.mu.Unlock()
	if f == nil {
		c.Reset()
		return false
	}
	f()
	return true
}

// Server returns the server's index.
func (c *Conn) Server() int { return c.host.index }

// Reset breaks the connection for both ends.
func (c *Conn) Reset() { c.client.reset() }

func (c *Conn) stream(d Direction) *stream {
	if d == Up {
		return c.server.in
	}
	return c.client.in
}
