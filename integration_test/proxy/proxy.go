package proxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Direction says which of the two streams of a connection is meant.
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

// Config says what a proxy does beyond forwarding. The zero value of all but
// Target is what New uses.
type Config struct {
	// Target is the address to dial, as net.Dial takes it.
	Target string

	// Count makes the proxy read along: the connections through it have to be
	// those of ZooKeeper clients, without TLS. See Proxy.Counts and
	// Proxy.KillOn.
	Count bool

	// Patience is how long a client is kept waiting while the target refuses
	// to be dialled. A client that takes a refused connection for "not yet"
	// and a reset one for "broken" needs it: through a proxy it sees no
	// refusal, because the proxy has accepted it already.
	Patience time.Duration

	// Rewrite, unless nil, is called once for each connection with the
	// client's stream and returns what goes to the server in its place. It
	// must not read before its result is read from.
	Rewrite func(client io.Reader) io.Reader
}

// Proxy forwards TCP connections from a free port of 127.0.0.1 to a target,
// and breaks them on demand. All methods are safe for concurrent use. Close
// ends it.
type Proxy struct {
	config   Config
	listener net.Listener
	counter  *counter // nil unless the proxy counts

	wg sync.WaitGroup // the accept loop and everything it started

	mu      sync.Mutex
	closed  bool
	refuse  bool
	lanes   [2]lane // by Direction-1: Up, Down
	conns   map[*conn]struct{}
	changed chan struct{} // closed and replaced whenever a field above changes
}

// lane is what is done to one direction of every connection.
type lane struct {
	swallow bool
	stall   bool
	delay   time.Duration
}

// New starts a proxy to target, an address as net.Dial takes it.
func New(target string) (*Proxy, error) { return Start(Config{Target: target}) }

// NewCounting starts a proxy with Config.Count.
func NewCounting(target string) (*Proxy, error) { return Start(Config{Target: target, Count: true}) }

// Start starts a proxy.
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

// Addr is the address clients dial.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Target is the address the proxy dials.
func (p *Proxy) Target() string { return p.config.Target }

// Cut resets every connection and refuses new ones until Heal.
func (p *Proxy) Cut() {
	p.change(func() { p.refuse = true })
	p.KillConns()
}

// Refuse refuses new connections until Heal and leaves those there are alone.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true }) }

// Blackhole makes the bytes of a direction vanish, on every connection, until
// Heal. Nobody is told: connections stay open, and the end of one, too, is kept
// from the other end. New connections are accepted; as long as Up is gone the
// server does not hear of them.
func (p *Proxy) Blackhole(d Direction) { p.each(d, func(l *lane) { l.swallow = true }) }

// Stall holds back the bytes of a direction until Heal, which delivers them.
func (p *Proxy) Stall(d Direction) { p.each(d, func(l *lane) { l.stall = true }) }

// Delay makes the bytes of a direction arrive by after later than they were
// sent, until it is set anew or Heal is called. It is latency, not bandwidth:
// what was sent together arrives together.
func (p *Proxy) Delay(d Direction, after time.Duration) {
	p.each(d, func(l *lane) { l.delay = after })
}

// Heal ends whatever Cut, Refuse, Blackhole, Stall and Delay began. It resets
// the connections that lost bytes.
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

// KillConns resets both ends of every connection and returns how many there
// were. New ones are welcome.
func (p *Proxy) KillConns() int {
	all := p.snapshot()
	for _, c := range all {
		c.reset()
	}
	return len(all)
}

// KillEnd resets one end of every connection and keeps the other one open and
// silent: the one side knows at once, the other has to find out by itself.
func (p *Proxy) KillEnd(e End) int {
	all := p.snapshot()
	for _, c := range all {
		c.abandon(e)
	}
	return len(all)
}

// HalfClose ends a direction of every connection in good order: the receiver
// reads the end of the stream and may go on sending.
func (p *Proxy) HalfClose(d Direction) {
	for _, c := range p.snapshot() {
		c.halfClose(d)
	}
}

// Conns is how many connections there are.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close resets every connection, gives up the port, and returns when all that
// the proxy started has ended.
func (p *Proxy) Close() error {
	p.change(func() { p.closed = true })
	err := p.listener.Close()
	p.KillConns()
	p.wg.Wait()
	return err
}

// accept serves until the listener is closed.
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
		// A connection into a black hole is not dialled: a server that
		// handles one accepted connection at a time (ZooKeeper's election
		// port does) would wait for its first byte and hear nobody else.
		if server = p.dial(); server == nil {
			resetConn(client)
			return
		}
	}
	c := newConn(p, client, server)
	p.mu.Lock()
	// Cut, Close and Heal look at the connections they find: one that was
	// being dialled at that moment is judged here, by what holds now.
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

// dial connects to the target, or returns nil if that was in vain.
func (p *Proxy) dial() *net.TCPConn {
	giveUp := time.Now().Add(p.config.Patience)
	for {
		nc, err := net.DialTimeout("tcp", p.config.Target, dialTimeout)
		// A dial to a port of the range that outgoing connections use may
		// get that very port, and then TCP connects it to itself.
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

// change applies set and wakes everything that waits for a change.
func (p *Proxy) change(set func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set()
	close(p.changed)
	p.changed = make(chan struct{})
}

// lane returns what holds for d now, and a channel that closes when that may
// no longer be so.
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
