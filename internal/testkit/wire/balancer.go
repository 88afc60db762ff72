package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// balancer is the address of the balancer, if there is one.
var balancer = netip.MustParseAddrPort("10.0.2.1:2181")

// Balance puts a TCP balancer in front of the servers, and returns its address. It accepts each connection at once, as a
// proxy does, and passes it on to the server that next returns. If next returns -1, or if that server refuses connections,
// it closes the connection. It acknowledges what clients send, whatever the server does. next must not use the network.
func (n *Network) Balance(next func() int) (addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next = next
	return balancer.String()
}

// Idle makes the balancer reset connections on which nothing was sent for d. It applies to new connections.
func (n *Network) Idle(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.idle = d
}

// Limit is the most connections that a server has, as by maxClientCnxns: it accepts further ones, and closes them at once.
// A negative one is none. It returns how many were closed so far.
func (n *Network) Limit(server, most int) (closed int) {
	n.change(server, func(h *host) { h.limit, closed = most+1, h.full })
	return closed
}

// Count returns how many connections a server has.
func (n *Network) Count(server int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.countLocked(n.hosts[server])
}

func (n *Network) countLocked(h *host) (all int) {
	for _, c := range n.conns {
		if c.host == h && c.script == nil {
			all++
		}
	}
	return all
}

// shut is the script of a connection that is closed as soon as it was accepted.
func shut(net.Conn) {}

// hang is the script of a connection that the balancer could not pass on yet.
func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// pass connects to the balancer.
func (n *client) pass(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	server, idle := n.next(), n.idle
	n.mu.Unlock()
	h := n.hosts[max(server, 0)]
	if err := sleep(ctx, n.travel(h, true)+n.travel(h, false)); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = os.ErrDeadlineExceeded
		}
		return nil, err
	}
	_, cut, refused := n.control.Server(h.index)
	var script func(net.Conn)
	n.mu.Lock()
	switch {
	case server < 0 || refused || h.off:
		script = shut
	case cut && !h.stopped || h.gone:
		script = hang
	}
	n.mu.Unlock()
	c, err := n.connect(h, balancer, script)
	if err == nil && idle > 0 {
		c.(*end).limitIdle(idle)
	}
	return c, err
}

// limitIdle resets a connection when nothing was sent on it for d.
func (e *end) limitIdle(d time.Duration) {
	var look func()
	look = func() {
		newest := e.in.newest()
		if other := e.out.newest(); other.After(newest) {
			newest = other
		}
		e.in.mu.Lock()
		over := e.in.err != nil
		e.in.mu.Unlock()
		switch left := d - time.Since(newest); {
		case over:
		case left <= 0:
			e.reset()
		default:
			time.AfterFunc(left, look)
		}
	}
	time.AfterFunc(d, look)
}

// newest returns when the newest piece has arrived, or arrives.
func (s *stream) newest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
