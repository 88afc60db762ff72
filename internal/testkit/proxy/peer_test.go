package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

const (
	// patience is the longest time that the test waits for an event that has to happen.
	patience = 10 * time.Second

	// silence is how long a connection has to stay silent to prove that nothing arrives.
	silence = 100 * time.Millisecond
)

// peer is one end of a proxied connection. Its methods state what the test expects there.
type peer struct {
	t *testing.T
	*net.TCPConn
}

func (p peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatalf("send %q: %v", text, err)
	}
}

func (p peer) receives(text string) {
	p.t.Helper()
	p.deadline(patience)
	got := make([]byte, len(text))
	if n, err := io.ReadFull(p, got); err != nil || string(got) != text {
		p.t.Fatalf("received %q, %v, want %q", got[:n], err, text)
	}
}

func (p peer) hearsNothing() {
	p.t.Helper()
	p.deadline(silence)
	if n, err := p.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
}

func (p peer) isReset() {
	p.t.Helper()
	p.deadline(patience)
	_, err := p.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("read: %v, want a reset", err)
	}
}

func (p peer) isAtEnd() {
	p.t.Helper()
	p.deadline(patience)
	if n, err := p.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		p.t.Fatalf("read %d bytes, %v, want the end of the stream", n, err)
	}
}

func (p peer) deadline(d time.Duration) {
	p.t.Helper()
	if err := p.SetReadDeadline(time.Now().Add(d)); err != nil {
		p.t.Fatal(err)
	}
}

// bench is a proxy in front of a listener.
type bench struct {
	t     *testing.T
	proxy *proxy.Proxy
	l     net.Listener
}

func newBench(t *testing.T, c proxy.Config) *bench {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c.Target = l.Addr().String()
	p, err := proxy.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := p.Conns(); n != 0 {
			t.Errorf("%d connections after Close", n)
		}
	})
	return &bench{t: t, proxy: p, l: l}
}

func (b *bench) dial() peer {
	b.t.Helper()
	nc, err := net.Dial("tcp", b.proxy.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	return peer{b.t, nc.(*net.TCPConn)}
}

// isRefused checks that a new connection is reset, before the dial returns or after it.
func (b *bench) isRefused() {
	b.t.Helper()
	nc, err := net.Dial("tcp", b.proxy.Addr())
	if err != nil {
		return
	}
	defer nc.Close()
	peer{b.t, nc.(*net.TCPConn)}.isReset()
}

func (b *bench) accept() peer {
	b.t.Helper()
	if err := b.l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	nc, err := b.l.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	return peer{b.t, nc.(*net.TCPConn)}
}

// pair returns both ends of a connection that has carried a byte each way.
func (b *bench) pair() (client, server peer) {
	b.t.Helper()
	client = b.dial()
	server = b.accept()
	client.send("?")
	server.receives("?")
	server.send("!")
	client.receives("!")
	return client, server
}
