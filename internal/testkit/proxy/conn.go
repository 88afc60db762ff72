package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is the number of chunks of one direction that may be queued. It bounds the
// memory that a stalled or delayed connection uses. When the queue is full, the proxy
// stops reading from the sender, and TCP's own flow control holds the sender back.
const inFlight = 256

// conn is one connection through the proxy. For each direction, a reader goroutine queues
// chunks from the sender as they arrive. A writer goroutine delivers them when the
// direction's lane allows it, or drops them.
type conn struct {
	proxy  *Proxy
	client *net.TCPConn
	server *net.TCPConn // nil: a connection into a black hole
	source io.Reader    // the client's stream, rewritten
	reads  *reading     // nil if the proxy does not count

	dead     chan struct{} // closed by reset
	deadOnce sync.Once

	broken atomic.Bool    // bytes were lost: Heal has to reset the connection
	mute   atomic.Bool    // forwarding has stopped, in both directions
	shut   [2]atomic.Bool // by Direction-1: half-closed by the test
}

// chunk is a piece of a stream. A chunk with err is the end of the stream.
type chunk struct {
	data []byte
	at   time.Time // when it was read
	err  error     // io.EOF, or the error of reading from the sender
}

func newConn(p *Proxy, client, server *net.TCPConn) *conn {
	c := &conn{proxy: p, client: client, server: server, source: client, dead: make(chan struct{})}
	if rewrite := p.config.Rewrite; rewrite != nil {
		c.source = rewrite(client)
	}
	if p.counter != nil {
		c.reads = newReading(p.counter)
	}
	if server == nil {
		c.mute.Store(true)
		c.broken.Store(true)
	}
	return c
}

// carry forwards until both directions are over, then closes both ends.
func (c *conn) carry() {
	var wg sync.WaitGroup
	forward := func(d Direction, from io.Reader) {
		queue := make(chan chunk, inFlight)
		wg.Go(func() { c.read(d, from, queue) })
		wg.Go(func() { c.write(d, queue) })
	}
	forward(Up, c.source)
	if c.server != nil {
		forward(Down, c.server)
	}
	wg.Wait()
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

// read queues the sender's bytes until the end of the stream.
func (c *conn) read(d Direction, from io.Reader, queue chan<- chunk) {
	defer close(queue)
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if n > 0 && c.reads != nil && c.reads.feed(d, buf[:n]) {
			c.reset() // this request or reply matches a KillOn
			return
		}
		if n > 0 && !c.enqueue(queue, chunk{data: buf[:n], at: time.Now()}) {
			return
		}
		if err != nil {
			c.enqueue(queue, chunk{at: time.Now(), err: err})
			return
		}
	}
}

func (c *conn) enqueue(queue chan<- chunk, ch chunk) bool {
	select {
	case queue <- ch:
		return true
	case <-c.dead:
		return false
	}
}

// write delivers the queued chunks when they are due.
func (c *conn) write(d Direction, queue <-chan chunk) {
	to := c.client
	if d == Up {
		to = c.server
	}
	for ch := range queue {
		switch {
		case !c.due(d, ch.at):
			c.broken.Store(true)
		case c.shut[d-1].Load():
		case errors.Is(ch.err, io.EOF):
			to.CloseWrite() // an error means that the receiver is gone already
		case ch.err != nil:
			c.reset()
		default:
			if _, err := to.Write(ch.data); err != nil && !c.mute.Load() {
				c.reset()
			}
		}
	}
}

// due waits until a chunk that was read at that time may be delivered. It returns false
// if the chunk must not be delivered at all.
func (c *conn) due(d Direction, at time.Time) bool {
	for {
		l, changed := c.proxy.lane(d)
		if c.mute.Load() || l.swallow {
			return false
		}
		var timer *time.Timer
		var expired <-chan time.Time
		if !l.stall {
			wait := time.Until(at.Add(l.delay))
			if wait <= 0 {
				return true
			}
			timer = time.NewTimer(wait)
			expired = timer.C
		}
		select {
		case <-expired:
		case <-changed:
		case <-c.dead:
			return false
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// reset breaks both ends so that each of them reads an error.
func (c *conn) reset() {
	c.deadOnce.Do(func() {
		c.mute.Store(true)
		close(c.dead)
		resetConn(c.client)
		if c.server != nil {
			resetConn(c.server)
		}
	})
}

// abandon resets one end. The other end stays open and receives nothing more.
func (c *conn) abandon(e End) {
	c.broken.Store(true)
	c.mute.Store(true) // before the reset, which must not reach the other end
	if e == Client {
		resetConn(c.client)
	} else if c.server != nil {
		resetConn(c.server)
	}
}

// halfClose ends the streams of direction d: their receivers read the end.
func (c *conn) halfClose(d Direction) {
	if d&Up != 0 && c.server != nil && !c.shut[Up-1].Swap(true) {
		c.server.CloseWrite()
	}
	if d&Down != 0 && !c.shut[Down-1].Swap(true) {
		c.client.CloseWrite()
	}
}

// resetConn closes a connection with a reset instead of an orderly end.
func resetConn(nc *net.TCPConn) {
	nc.SetLinger(0)
	nc.Close()
}
