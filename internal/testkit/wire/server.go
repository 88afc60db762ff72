package wire

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// maxRequest is the servers' default jute.maxbuffer. A server cuts the connection of a longer request.
const maxRequest = 0xfffff

// Conn is a connection, for tests that disturb it.
type Conn struct {
	net    *Network
	from   *client
	host   *host
	client *end
	server *end
	out    io.Writer // the server's end, of TLS if there is TLS
	link   memcontrol.Link
	script func(net.Conn) // in place of a server; nil: the host's

	mu      sync.Mutex
	session int64     // guarded by mu; 0 until it is known
	ready   bool      // the handshake was answered; guarded by mu
	heard   time.Time // when the client's part of it arrived; guarded by mu
	waiting []request // without an answer, in order; guarded by mu
	strike  Strike    // guarded by mu
	struck  func()    // in place of a break; guarded by mu
}

// request is a request without an answer.
type request struct {
	xid, op int32
	memcontrol.Request
}

// serve is the server's half of a connection. It ends with the connection.
func (c *Conn) serve() {
	defer c.net.forget(c)
	defer c.server.Close()
	c.net.mu.Lock()
	script := c.script
	if script == nil {
		script = c.host.script
	}
	c.net.mu.Unlock()
	if script != nil {
		script(c.server)
		return
	}
	var in net.Conn = c.server
	if c.net.tls != nil {
		t := tls.Server(c.server, c.net.tls)
		if c.net.at(c.host, TLSHello) || t.Handshake() != nil {
			c.idle()
			return
		}
		in = t
	}
	c.out = in
	frame, err := read(in)
	if word, ok := err.(fourLetters); ok {
		c.answerWord(string(word))
		return
	}
	if err != nil || c.net.at(c.host, Hello) {
		c.idle()
		return
	}
	f := &fields{b: frame}
	f.int32()
	h := memcontrol.Hello{Seen: f.int64(), Timeout: time.Duration(f.int32()) * time.Millisecond, Session: f.int64(), Password: f.string()}
	if f.bad {
		return
	}
	c.mu.Lock()
	c.session, c.heard = h.Session, time.Now()
	c.mu.Unlock()
	h.Foreign = c.from.foreign(h.Session)
	c.link = c.net.control.Attach(c.host.index, h, c)
	defer c.link.Close()
	for {
		if frame, err = read(in); err != nil || !c.receive(frame) {
			return
		}
	}
}

// idle reads until the client gives up.
func (c *Conn) idle() { _, _ = io.Copy(io.Discard, c.server) }

// receive processes a request.
func (c *Conn) receive(frame []byte) (goOn bool) {
	f := &fields{b: frame}
	r := request{xid: f.int32(), op: f.int32()}
	if r.op == opSASL {
		return c.authenticate(r.xid, f.string())
	}
	var known bool
	r.Request, known = f.request(r.op)
	c.mu.Lock()
	strike := c.strike
	ready := c.ready
	c.mu.Unlock()
	switch {
	case f.bad && known, !ready:
		return false
	case strike == BeforeRequest && r.op != opPing && !c.hit():
		return false
	case !known:
		c.send(header(r.xid, 0, codes[driver.ErrUnimplemented])) // the order does not matter: no client here sends it
		return true
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, r)
	c.mu.Unlock()
	c.link.Send(r.Request)
	return true
}

// Welcome implements memcontrol.Client.
func (c *Conn) Welcome(session int64, password string, timeout time.Duration) {
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = append(text(b, password), 0)
	c.mu.Lock()
	asked := c.session
	c.session, c.ready = session, true
	c.mu.Unlock()
	c.from.welcome(asked, session)
	c.client.in.delay(c.net.late(c.host))
	c.send(b)
}

// Answer implements memcontrol.Client.
func (c *Conn) Answer(a memcontrol.Answer) {
	c.mu.Lock()
	r := c.waiting[0]
	c.waiting = c.waiting[1:]
	strike := c.strike
	c.mu.Unlock()
	if strike == BeforeReply && r.op != opPing && !c.hit() {
		return
	}
	switch {
	case strike == NoReply && r.op != opPing:
	case r.op == opMulti && (a.Err == nil || a.Failed >= 0):
		c.send(results(header(r.xid, a.Zxid, 0), r.Request, a))
	case a.Err != nil:
		if code(a.Err) == codes[driver.ErrSessionExpired] {
			c.from.welcome(c.Session(), 0)
		}
		c.send(header(r.xid, a.Zxid, code(a.Err)))
	default:
		c.send(body(header(r.xid, a.Zxid, 0), r.op, r.Request, a))
	}
}

// Event implements memcontrol.Client.
func (c *Conn) Event(path string, event driver.EventType) {
	b := header(-1, -1, 0)
	b = binary.BigEndian.AppendUint32(b, eventTypes[event])
	c.send(text(binary.BigEndian.AppendUint32(b, 3), path)) // 3: connected
}

// Closed implements memcontrol.Client.
func (c *Conn) Closed(reset bool) {
	if reset {
		c.Reset()
		return
	}
	c.server.Close()
}

func (c *Conn) send(frame []byte) { _, _ = c.out.Write(framed(frame)) } // a client that has gone gets nothing

// header returns the header of a reply.
func header(xid int32, zxid int64, code int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

// fourLetters is the error of read for a four-letter word.
type fourLetters string

func (fourLetters) Error() string { return "a four-letter word" }

// read reads a frame.
func read(r io.Reader) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	if word := string(prefix[:]); word == "srvr" || word == "ruok" || word == "mntr" {
		return nil, fourLetters(word)
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > maxRequest {
		return nil, io.ErrShortBuffer
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// answerWord answers a four-letter word, and closes the connection. A server that is cut off answers
// when that ends.
func (c *Conn) answerWord(word string) {
	c.net.change(c.host.index, func(h *host) { h.asked++ })
	mode, cut, _ := c.net.control.Server(c.host.index)
	for ; cut; mode, cut, _ = c.net.control.Server(c.host.index) {
		_ = c.server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := c.server.Read(make([]byte, 1)); err == io.EOF {
			return
		}
	}
	switch {
	case word == "ruok":
		_, _ = io.WriteString(c.out, "imok")
	case mode == "":
		_, _ = io.WriteString(c.out, "This ZooKeeper instance is not currently serving requests\n")
	case word == "mntr":
		_, _ = io.WriteString(c.out, "zk_version\t3.9.4\nzk_server_state\t"+mode+"\n")
	default:
		_, _ = io.WriteString(c.out, "Zookeeper version: 3.9.4, built on 2025-08-19 19:53 UTC\nMode: "+mode+"\n")
	}
}

func cutUser(auth string) (user, password string) {
	user, password, _ = strings.Cut(auth, ":")
	return user, password
}
