package fault

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy passes the connections of one client on to one server. It can hold back the bytes of either
// direction, as a network does that loses them and has them sent again later. Its methods are safe for
// concurrent use.
type proxy struct {
	listener net.Listener
	target   string
	patience time.Duration // how long a connection is kept while the server does not listen
	up, down gate
	delay    atomic.Int64                 // see slow
	distance atomic.Int64                 // in either direction, of connections that begin from now on: see far
	answered atomic.Pointer[func([]byte)] // see Link.OnAnswer
	group    sync.WaitGroup

	mu      sync.Mutex
	refuses bool                  // guarded by mu
	conns   map[net.Conn]struct{} // both ends of all connections; guarded by mu
}

// newProxy listens on loopback, on a free port, for connections to target.
func newProxy(target string, patience time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, patience: patience, conns: make(map[net.Conn]struct{})}
	p.group.Go(p.accept)
	return p, nil
}

// addr is the address to use in place of the server's.
func (p *proxy) addr() string { return p.listener.Addr().String() }

// slow makes all bytes take longer in either direction; 0: they take no longer than the network needs.
func (p *proxy) slow(by time.Duration) { p.delay.Store(int64(by)) }

// hold holds back the bytes from the client to the server, from the server to the client, or both,
// until a call with false passes them on. The client can connect, and has no answer. Bytes that the
// proxy has taken already may still pass.
func (p *proxy) hold(up, down bool) {
	p.up.set(up)
	p.down.set(down)
}

// refuse resets all connections. It resets new ones, too, until a call with false.
func (p *proxy) refuse(refuses bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuses
	if refuses {
		p.resetLocked()
	}
}

// connected reports whether there is a connection.
func (p *proxy) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}

// reset resets all connections. New ones pass.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked()
}

// resetLocked closes the connections, which wakes no goroutine that a gate holds: those find out when
// the gate opens. The caller holds mu.
func (p *proxy) resetLocked() {
	for c := range p.conns {
		closeNow(c)
	}
}

// close ends all connections and waits for the proxy's goroutines.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.refuses = true
	p.resetLocked()
	p.mu.Unlock()
	p.hold(false, false)
	p.group.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.pass(c) })
	}
}

// pass connects a client with the server until either end closes.
func (p *proxy) pass(client net.Conn) {
	if !p.add(client) {
		return
	}
	defer p.remove(client)
	server, err := net.Dial("tcp", p.target)
	for began := time.Now(); err != nil && time.Since(began) < p.patience; server, err = net.Dial("tcp", p.target) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return
	}
	if !p.add(server) {
		return
	}
	defer p.remove(server)
	var group sync.WaitGroup
	group.Go(func() { p.pump(server, client, &p.up, nil) })
	group.Go(func() { p.pump(client, server, &p.down, p.answered.Load()) })
	group.Wait()
}

// pump passes bytes on as long as the gate is open. It calls a function with the first ones, if there is one. At its end it
// closes both connections.
func (p *proxy) pump(to, from net.Conn, g *gate, first *func([]byte)) {
	defer closeNow(to)
	defer closeNow(from)
	out := io.Writer(to)
	if by := time.Duration(p.distance.Load()); by > 0 {
		far := newFar(to, by)
		defer far.close()
		out = far
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if first != nil && n > 0 {
			(*first)(buf[:n])
			first = nil
		}
		if d := time.Duration(p.delay.Load()); n > 0 && d > 0 {
			time.Sleep(d)
		}
		g.wait()
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// add notes a connection, or closes it if the proxy refuses connections.
func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		closeNow(c)
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) remove(c net.Conn) {
	closeNow(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// closeNow closes a connection with a reset, so that neither end waits for what is under way.
func closeNow(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails if the connection is closed already
	}
	_ = c.Close()
}
