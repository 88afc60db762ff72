package fault_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// echo serves connections: each byte is sent back, and counted.
type echo struct {
	net.Listener
	heard chan byte
}

func newEcho(t *testing.T) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{l, make(chan byte, 16)}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				b := make([]byte, 1)
				for {
					if _, err := io.ReadFull(c, b); err != nil {
						return
					}
					e.heard <- b[0]
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return e
}

func newLink(t *testing.T, addr string) *fault.Link {
	link, err := fault.NewLink([]string{addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func dial(t *testing.T, link *fault.Link) net.Conn {
	c, err := net.Dial("tcp", link.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange writes a byte and reads it.
func exchange(t *testing.T, c net.Conn, b byte) {
	t.Helper()
	if _, err := c.Write([]byte{b}); err != nil {
		t.Fatal(err)
	}
	hears(t, c, b)
}

func hears(t *testing.T, c net.Conn, want byte) {
	t.Helper()
	got := make([]byte, 1)
	if _, err := io.ReadFull(c, got); err != nil || got[0] != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

// silent fails if a connection has a byte to read, or ends. It looks for a moment only: a byte that is
// late makes the test pass.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// TestProxyHoldsBytes: bytes do not pass in the direction that is held back, those of the other
// direction do, and all are there after the end of the fault.
func TestProxyHoldsBytes(t *testing.T) {
	e := newEcho(t)
	for kind, reaches := range map[fault.Kind]bool{fault.CutClient: false, fault.HalfUp: false, fault.HalfDown: true} {
		t.Run(string(kind), func(t *testing.T) {
			link := newLink(t, e.Addr().String())
			c := dial(t, link)
			exchange(t, c, 'a')
			<-e.heard
			link.Break(kind)
			if _, err := c.Write([]byte{'b'}); err != nil {
				t.Fatal(err)
			}
			if reaches {
				<-e.heard
			}
			silent(t, c)
			if len(e.heard) > 0 {
				t.Error("the server has read the byte, and the connection is cut")
			}
			link.Heal()
			hears(t, c, 'b')
			if !reaches {
				<-e.heard
			}
		})
	}
}

// TestProxyAtADistance: an answer takes the way there and back, also after the end of a fault.
func TestProxyAtADistance(t *testing.T) {
	const distance = 30 * time.Millisecond
	link := newLink(t, newEcho(t).Addr().String())
	link.Move(distance)
	link.Heal()
	c := dial(t, link)
	began := time.Now()
	for range 3 {
		exchange(t, c, 'a')
	}
	if took := time.Since(began); took < 3*2*distance {
		t.Errorf("three exchanges took %v, want %v at least", took, 3*2*distance)
	}
}

// TestProxyRefuses: a reset ends the connections that exist. New ones work only after the fault.
func TestProxyRefuses(t *testing.T) {
	e := newEcho(t)
	link := newLink(t, e.Addr().String())
	ended := func(c net.Conn) {
		t.Helper()
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Fatalf("read %d bytes, %v, want an error", n, err)
		}
	}
	c := dial(t, link)
	exchange(t, c, 'a')
	link.Break(fault.ResetClient)
	ended(c)
	if c, err := net.Dial("tcp", link.Addrs()[0]); err == nil { // the reset may arrive first
		ended(c)
		c.Close()
	}
	link.Heal()
	c = dial(t, link)
	exchange(t, c, 'b')
	link.Reset(0)
	ended(c)
	exchange(t, dial(t, link), 'c')
}

// TestProxyCloses while it holds bytes back.
func TestProxyCloses(t *testing.T) {
	e := newEcho(t)
	link := newLink(t, e.Addr().String())
	c := dial(t, link)
	link.Break(fault.CutClient)
	if _, err := c.Write([]byte{'a'}); err != nil {
		t.Fatal(err)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
}

// TestSlowLink: bytes take longer in each direction, until the link is healed.
func TestSlowLink(t *testing.T) {
	link := newLink(t, newEcho(t).Addr().String())
	c := dial(t, link)
	const by = 20 * time.Millisecond
	link.Slow(by)
	began := time.Now()
	exchange(t, c, 1)
	if took := time.Since(began); took < 2*by {
		t.Errorf("a byte was back after %v, want %v at least", took, 2*by)
	}
	link.Heal()
	exchange(t, c, 2)
}

// TestConfine: a confined client reaches one server, and no other one.
func TestConfine(t *testing.T) {
	link, err := fault.NewLink([]string{newEcho(t).Addr().String(), newEcho(t).Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	other := dial(t, link)
	exchange(t, other, 1)
	if link.Confine(1) {
		t.Error("the client is connected to the second server already")
	}
	if _, err := io.ReadFull(other, make([]byte, 1)); err == nil {
		t.Error("the connection to the first server has survived")
	}
	c, err := net.Dial("tcp", link.Addrs()[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	exchange(t, c, 2)
	if !link.Confine(1) {
		t.Error("the client is not connected to the second server")
	}
	link.Heal()
	exchange(t, dial(t, link), 3)
}
