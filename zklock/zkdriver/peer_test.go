package zkdriver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// Operation codes of the protocol.
const (
	opCreate    = 1
	opDelete    = 2
	opExists    = 3
	opGetData   = 4
	opSetData   = 5
	opSync      = 9
	opPing      = 11
	opChildren  = 12
	opMulti     = 14
	opContainer = 19
	opAuth      = 100
	opSetWatch  = 101
	opClose     = -11
)

// sid is the id of the session that peers grant.
const sid = 0x1234

// peer is a server that speaks as much of the protocol as a test implements. It runs
// script for each connection; the first connection has number 1.
type peer struct {
	net.Listener // nil for a server of a network in memory
	wg           sync.WaitGroup
	at           string
	options      []any

	mu    sync.Mutex
	conns []*link     // guarded by mu
	times []time.Time // when each was accepted; guarded by mu
}

// newPeer starts a peer on loopback that stops at the end of the test.
func newPeer(t *testing.T, script func(l *link)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return servePeer(t, ln, script)
}

func servePeer(t *testing.T, ln net.Listener, script func(l *link)) *peer {
	p := &peer{Listener: ln, at: ln.Addr().String()}
	p.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			l := p.link(conn)
			p.wg.Go(func() {
				defer conn.Close()
				script(l)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.drop()
		p.wg.Wait()
	})
	return p
}

// virtual starts a peer in place of a server of a network in memory, for a test in virtual time.
func virtual(n *wire.Network, server int, script func(l *link)) *peer {
	p := &peer{at: wire.Addr(server), options: n.URL().Options}
	n.Script(server, func(conn net.Conn) { script(p.link(conn)) })
	return p
}

func (p *peer) link(conn net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{Conn: conn, n: len(p.conns) + 1, timeout: time.Minute}
	p.conns, p.times = append(p.conns, l), append(p.times, time.Now())
	return l
}

// drop closes all connections.
func (p *peer) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.conns {
		_ = l.Close()
	}
}

// accepted returns how many connections the peer has accepted.
func (p *peer) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// pauses returns the times between the connections so far, which were dialled one after the other, and forgets these.
func (p *peer) pauses() (all []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range len(p.times) - 1 {
		all = append(all, p.times[i+1].Sub(p.times[i]))
	}
	p.times = nil
	return all
}

func (p *peer) addr() string { return p.at }

func (p *peer) url() driver.URL {
	return driver.URL{Scheme: "zk", Hosts: []string{p.addr()}, Options: p.options}
}

// link is one connection to a peer.
type link struct {
	net.Conn
	n       int
	timeout time.Duration // the session timeout that is granted
	seen    uint64        // the zxid in the client's ConnectRequest
	pinged  func()        // called for each ping, if not nil
	pushed  []byte        // read already, and to be read again
	keeper  bool          // sessions have the password of ClickHouse Keeper's
	wmu     sync.Mutex
}

// Read returns first what was pushed back.
func (l *link) Read(b []byte) (int, error) {
	if len(l.pushed) > 0 {
		n := copy(b, l.pushed)
		l.pushed = l.pushed[n:]
		return n, nil
	}
	return l.Conn.Read(b)
}

// req is a request as a peer reads it.
type req struct {
	xid, op int32
	body    []byte
}

// path returns the string that the body of most requests begins with.
func (r req) path() string {
	if len(r.body) < 4 {
		return ""
	}
	n := int(binary.BigEndian.Uint32(r.body))
	return string(r.body[4 : 4+n])
}

func (l *link) readFrame() ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(l, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > 1<<24 {
		return nil, errors.New("no frame, such as a question for the status")
	}
	b := make([]byte, n)
	_, err := io.ReadFull(l, b)
	return b, err
}

func (l *link) writeFrame(b []byte) {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	_, _ = l.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

// greet reads the ConnectRequest and answers it with session id. It returns the
// session id that the client asked for.
func (l *link) greet(id int64) (asked int64, ok bool) {
	b, err := l.readFrame()
	if err != nil || len(b) < 24 {
		return 0, false
	}
	l.seen = binary.BigEndian.Uint64(b[4:])
	l.welcome(id)
	return int64(binary.BigEndian.Uint64(b[16:])), true
}

// welcome sends a ConnectResponse.
func (l *link) welcome(id int64) {
	timeout := uint32(l.timeout / time.Millisecond)
	if id == 0 {
		timeout = 0
	}
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint32(b, timeout)
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, 16)
	password := bytes.Repeat([]byte{7}, 16)
	if id == 0 || l.keeper {
		clear(password)
	}
	l.writeFrame(append(append(b, password...), 0))
}

// read returns the next request that is not a ping. It answers pings.
func (l *link) read() (req, bool) {
	for {
		b, err := l.readFrame()
		if err != nil || len(b) < 8 {
			return req{}, false
		}
		r := req{int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:])), b[8:]}
		if r.op != opPing {
			return r, true
		}
		l.reply(r, 0, nil)
		if l.pinged != nil {
			l.pinged()
		}
	}
}

// reply answers a request.
func (l *link) reply(r req, code int32, body []byte) { l.replyAt(7, r, code, body) }

// replyAt answers a request with the given zxid.
func (l *link) replyAt(zxid uint64, r req, code int32, body []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(r.xid))
	b = binary.BigEndian.AppendUint64(b, zxid)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	l.writeFrame(append(b, body...))
}

// succeed answers a request as if it had been executed.
func (l *link) succeed(r req) {
	stat := make([]byte, 68)
	switch r.op {
	case opCreate, opContainer, opSync:
		l.reply(r, 0, str(r.path()))
	case opGetData:
		l.reply(r, 0, append(str("data"), stat...))
	case opSetData, opExists:
		l.reply(r, 0, stat)
	case opChildren:
		l.reply(r, 0, append(binary.BigEndian.AppendUint32(nil, 0), stat...))
	default:
		l.reply(r, 0, nil)
	}
}

// event sends a watch event.
func (l *link) event(kind int32, path string) {
	b := binary.BigEndian.AppendUint32(nil, 0xffffffff)
	b = append(b, make([]byte, 12)...)
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	b = binary.BigEndian.AppendUint32(b, 3)
	l.writeFrame(append(b, str(path)...))
}

// work does the handshake and then answers every request until the connection ends.
func (l *link) work() {
	if _, ok := l.greet(sid); !ok {
		return
	}
	for {
		r, ok := l.read()
		if !ok {
			return
		}
		l.succeed(r)
		if r.op == opClose {
			return
		}
	}
}

func str(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// open makes a connector that is closed at the end of the test.
func open(t *testing.T, u driver.URL) driver.Connector {
	t.Helper()
	c, err := zkdriver.Driver{}.OpenConnector(u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connect makes a session that is closed at the end of the test.
func connect(t *testing.T, u driver.URL) driver.Session {
	t.Helper()
	s, err := open(t, u).Connect(within(t, 10*time.Second), 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(s) })
	return s
}

// shut closes a session whose peer may no longer answer.
func shut(s driver.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = s.Close(ctx)
}

// atOnce is the longest time for a call that returns at once. A busy machine stops a test for seconds.
// So it is only far below the time that these calls would take otherwise.
const atOnce = 15 * time.Second

// within returns a context that ends after d, or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// reach waits until a session is in a state.
func reach(t *testing.T, s driver.Session, want driver.State) {
	t.Helper()
	ctx := within(t, 10*time.Second)
	for {
		state, changed := s.State()
		if state == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("session stays %v, want %v", state, want)
		}
	}
}

// generation waits until a session has completed n handshakes.
func generation(t *testing.T, s driver.Session, n uint64) {
	t.Helper()
	ctx := within(t, 10*time.Second)
	for {
		_, changed := s.State()
		if g, _ := s.Conn(); g >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the session has not completed handshake %d", n)
		}
	}
}

// matches checks that err matches all of want.
func matches(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error is %v, want one that matches %q", err, w)
		}
	}
}

// recv waits for a value.
func recv[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("no value arrived within 10 s")
		panic("unreachable")
	}
}

// peek returns the next frame, which the next reader reads again.
func (l *link) peek() ([]byte, bool) {
	b, err := l.readFrame()
	if err != nil || len(b) < 24 {
		return nil, false
	}
	l.pushed = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	return b, true
}
