package integration_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// ZooKeeper's codes of operations that the tests look for.
const (
	codePing  = 11
	codeAuth  = 100
	codeClose = -11 // closes the session; it needs no rights
)

// wiretap is a proxy that records the operations of each connection's requests, in order, as
// the server receives them.
type wiretap struct {
	*proxy.Proxy

	// spoil replaces the scheme of credentials by one that the server does not know,
	// so that the server refuses them.
	spoil atomic.Bool

	mu    sync.Mutex
	conns []*tapped // guarded by mu
}

func newWiretap(t testing.TB, target string) *wiretap {
	t.Helper()
	w := &wiretap{}
	p, err := proxy.Start(proxy.Config{Target: target, Rewrite: func(client io.Reader) io.Reader {
		c := &tapped{w: w, from: client}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, c)
		return c
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.Proxy = p
	t.Cleanup(func() { _ = p.Close() }) // after the clients are closed
	return w
}

// asked returns the operations of each connection from number since on, without handshakes
// and pings.
func (w *wiretap) asked(since int) [][]int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all [][]int32
	for _, c := range w.conns[since:] {
		c.mu.Lock()
		all = append(all, slices.Clone(c.ops))
		c.mu.Unlock()
	}
	return all
}

// made returns the number of connections so far.
func (w *wiretap) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// tapped is the stream that a client sends on one connection.
type tapped struct {
	w    *wiretap
	from io.Reader
	rest []byte
	said bool // the handshake has passed

	mu  sync.Mutex
	ops []int32 // guarded by mu
}

// Read implements io.Reader. It passes whole frames.
func (c *tapped) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		var prefix [4]byte
		if _, err := io.ReadFull(c.from, prefix[:]); err != nil {
			return 0, err
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(prefix[:]))
		copy(frame, prefix[:])
		if _, err := io.ReadFull(c.from, frame[4:]); err != nil {
			return 0, err
		}
		c.rest = c.see(frame)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *tapped) see(frame []byte) []byte {
	if !c.said || len(frame) < 12 {
		c.said = true
		return frame
	}
	op := int32(binary.BigEndian.Uint32(frame[8:]))
	if op != codePing {
		c.mu.Lock()
		c.ops = append(c.ops, op)
		c.mu.Unlock()
	}
	if op == codeAuth && c.w.spoil.Load() {
		frame = bytes.Replace(frame, []byte("digest"), []byte("nosuch"), 1)
	}
	return frame
}
