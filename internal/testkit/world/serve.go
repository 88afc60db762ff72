package world

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Serve runs a server in a synctest bubble, where time is virtual, and returns a client of it. Their
// connections are pipes.
func Serve(t *testing.T, srv *http.Server) *http.Client {
	t.Helper()
	l := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case l.accepted <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		wg.Wait()
	})
	return &http.Client{Transport: transport}
}

// pipes is a net.Listener whose connections are the ends of pipes.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
