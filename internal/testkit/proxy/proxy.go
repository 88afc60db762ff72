package proxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Direction selects one of the two streams of a connection, or both.
type Direction uint8

const (
	// Up is the stream from the client to the server.
	Up Direction = 1 << iota

	// Down is the stream from the server to the client.
	Down

	// Both is Up and Down.
	Both = Up | Down
)

// End is one of the two ends of the connections through a proxy.
type End uint8

const (
	// Client is the end that dialled the proxy.
	Client End = iota

	// Server is the end that the proxy dialled.
	Server
)

const (
	// dialTimeout bounds the proxy's own dial to its target.
	dialTimeout = 5 * time.Second

	// redialInterval is the pause between dials while Config.Patience lasts.
	redialInterval = 10 * time.Millisecond
)

// Config configures a proxy. New uses the zero value of every field except Target.
type Config struct {
	// Target is the address to dial, as net.Dial takes it.
	Target string

	// Count makes the proxy parse and count the frames that it forwards. It counts
	// connections of ZooKeeper clients without TLS. See Proxy.Counts and Proxy.KillOn.
	Count bool

	// Patience is how long the proxy keeps a client waiting while the target refuses
	// connections. Some clients need it: they take a refused connection for "not yet"
	// and a reset one for "broken". Through a proxy they never see a refusal, because
	// the proxy has already accepted the connection.
	Patience time.Duration

	// Rewrite gets the stream of a client's connection, and returns the stream that goes to the
	// server instead. The proxy calls it once for each connection; if it is nil, the streams are
	// not changed. Rewrite must not read from the client's stream before the proxy reads from its
	// result.
	Rewrite func(client io.Reader) io.Reader
}

// Proxy forwards TCP connections from a free port of 127.0.0.1 to a target, and breaks
// them on demand. All methods are safe for concurrent use. Close stops it.
type Proxy struct {
	config   Config
	listener net.Listener
	counter  *counter // nil if the proxy does not count

	wg sync.WaitGroup // the accept loop and everything it started

	mu      sync.Mutex
	closed  bool
	refuse  bool
	lanes   [2]lane // by Direction-1: Up, Down
	conns   map[*conn]struct{}
	changed chan struct{} // closed and replaced when closed, refuse or lanes change
}

// lane is the fault that is applied to one direction of every connection.
type lane struct {
	swallow bool
	stall   bool
	delay   time.Duration
}

// New starts a proxy to target, an address as net.Dial takes it.
func New(target string) (*Proxy, error) { return Start(Config{Target: target}) }

// NewCounting starts a proxy with Config.Count.
func NewCounting(target string) (*Proxy, error) { return Start(Config{Target: target, Count: true}) }

// Start starts a proxy. It returns an error if it cannot listen on 127.0.0.1.
func Start(c Config) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", c.Target, err)
	}
	p := &Proxy{
		config:   c,
		listener: l,
		conns:    make(map[*conn]struct{}),
		changed:  make(chan struct{}),
	}
	if c.Count {
		p.counter = newCounter()
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address that clients dial.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Target returns the address that the proxy dials.
func (p *Proxy) Target() string { return p.config.Target }

// Cut resets every connection and refuses new ones until Heal.
func (p *Proxy) Cut() {
	p.change(func() { p.refuse = true })
	p.KillConns()
}

// Refuse refuses new connections until Heal. It leaves existing connections alone.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true }) }

// Blackhole drops the bytes of a direction, on every connection, until Heal. Neither end
// notices: connections stay open, and if one end closes, the other end does not see it.
// New connections are accepted. While Up is dropped, the server is not dialled for them.
func (p *Proxy) Blackhole(d Direction) { p.each(d, func(l *lane) { l.swallow = true }) }

// Stall holds back the bytes of a direction until Heal, which delivers them.
func (p *Proxy) Stall(d Direction) { p.each(d, func(l *lane) { l.stall = true }) }

// Delay makes the bytes of a direction arrive later by after, until the next call of
// Delay or Heal. It adds latency and does not limit bandwidth: bytes that were sent
// together arrive together.
func (p *Proxy) Delay(d Direction, after time.Duration) {
	p.each(d, func(l *lane) { l.delay = after })
}

// Heal ends the effects of Cut, Refuse, Blackhole, Stall and Delay. It resets the
// connections that lost bytes.
func (p *Proxy) Heal() {
	p.change(func() {
		p.refuse = false
		p.lanes = [2]lane{}
	})
	for _, c := range p.snapshot() {
		if c.broken.Load() {
			c.reset()
		}
	}
}

// KillConns resets both ends of every connection and returns the number of connections.
// New ones are accepted.
func (p *Proxy) KillConns() int {
	all := p.snapshot()
	for _, c := range all {
		c.reset()
	}
	return len(all)
}

// KillEnd resets one end of every connection and keeps the other end open and silent. The
// first notices at once, the other only by its own timeout. KillEnd returns the number of
// connections.
func (p *Proxy) KillEnd(e End) int {
	all := p.snapshot()
	for _, c := range all {
		c.abandon(e)
	}
	return len(all)
}

// HalfClose ends a direction of every connection without an error: the receiver reads the
// end of the stream and may go on sending.
func (p *Proxy) HalfClose(d Direction) {
	for _, c := range p.snapshot() {
		c.halfClose(d)
	}
}

// Conns returns the number of connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close resets every connection, closes the port, and returns when all goroutines of the
// proxy have ended. It returns the error of closing the listener.
func (p *Proxy) Close() error {
	p.change(func() { p.closed = true })
	err := p.listener.Close()
	p.KillConns()
	p.wg.Wait()
	return err
}

// accept serves connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve carries one connection to its end.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	refuse, hole := p.refuse || p.closed, p.lanes[Up-1].swallow
	p.mu.Unlock()
	if refuse {
		resetConn(client)
		return
	}
	var server *net.TCPConn
	if !hole {
		// While Up is dropped, the server is not dialled. A server that handles
		// one accepted connection at a time, as ZooKeeper's election port does,
		// would wait for this connection's first byte and serve no other client.
		if server = p.dial(); server == nil {
			resetConn(client)
			return
		}
	}
	c := newConn(p, client, server)
	p.mu.Lock()
	// Cut, Close and Heal act on the connections in p.conns. This connection was being dialled
	// and was not among them, so it obeys the present settings here.
	if p.refuse || p.closed || (hole && !p.lanes[Up-1].swallow) {
		p.mu.Unlock()
		c.reset()
		return
	}
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	c.carry()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// dial connects to the target. It returns nil if the dial failed.
func (p *Proxy) dial() *net.TCPConn {
	giveUp := time.Now().Add(p.config.Patience)
	for {
		nc, err := net.DialTimeout("tcp", p.config.Target, dialTimeout)
		// Outgoing connections get local ports of a certain range. A dial to a
		// port of that range may get the same port as its local one, and then TCP
		// connects it to itself.
		if err == nil && nc.LocalAddr().String() != nc.RemoteAddr().String() {
			return nc.(*net.TCPConn)
		}
		if err == nil {
			nc.Close()
		}
		p.mu.Lock()
		useless, changed := p.refuse || p.closed, p.changed
		p.mu.Unlock()
		if useless || time.Now().After(giveUp) {
			return nil
		}
		timer := time.NewTimer(redialInterval)
		select {
		case <-timer.C:
		case <-changed:
		}
		timer.Stop()
	}
}

// each applies set to the lanes of d.
func (p *Proxy) each(d Direction, set func(*lane)) {
	p.change(func() {
		for i := range p.lanes {
			if d&(1<<i) != 0 {
				set(&p.lanes[i])
			}
		}
	})
}

// change applies set and wakes all goroutines that wait for a change.
func (p *Proxy) change(set func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set()
	close(p.changed)
	p.changed = make(chan struct{})
}

// lane returns the lane of d, and a channel that is closed when the lane may have changed.
func (p *Proxy) lane(d Direction) (lane, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lanes[d-1], p.changed
}

func (p *Proxy) snapshot() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}
