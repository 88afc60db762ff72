// Command zk is the worker of locktest for zk.Lock of github.com/go-zookeeper/zk.
//
// The library's documentation has no word about the loss of a lock. So the worker is conservative, as ZooKeeper's
// programmer's guide recommends under "Things to Remember about Watches": it takes a lock as lost as soon as its
// connection reports StateDisconnected or StateExpired, whichever is first. If Lock returns nil though the session has ended
// since, it gives the lock back and waits again. It repeats Unlock until that has an answer. zk.Lock has no token.
//
// If Lock fails after it has created its node, the node stays as long as the session, and Lock does not say which one it
// is. So a name can be stuck; issue 229 of samuel/go-zookeeper, where the library comes from, describes that. A program
// could look for the node, by data that it gave to LockWithData, or close the connection. The documentation describes neither, and
// the guide advises against new sessions for a lost connection, so the worker does neither: its locks share one connection.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

func main() { worker.Main(open) }

func open(_ context.Context, s worker.Settings) (worker.Library, error) {
	l := &library{cut: make(chan struct{})}
	conn, _, err := zk.Connect(s.Servers, s.TTL, zk.WithEventCallback(l.event), zk.WithLogInfo(false))
	l.conn = conn
	return l, err
}

type library struct {
	conn *zk.Conn

	mu      sync.Mutex
	cut     chan struct{} // closed, and replaced, when the connection or the session ends; guarded by mu
	expired int           // how many sessions have ended; guarded by mu
}

// event is called with all events of the connection, in their order.
func (l *library) event(e zk.Event) {
	if e.Type != zk.EventSession || e.State != zk.StateDisconnected && e.State != zk.StateExpired {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.State == zk.StateExpired {
		l.expired++
	}
	close(l.cut)
	l.cut = make(chan struct{})
}

// now returns the channel of the next loss, and how many sessions have ended.
func (l *library) now() (cut <-chan struct{}, expired int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut, l.expired
}

// Acquire waits for the lock. Lock takes no context: Close ends it.
func (l *library) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	for {
		_, before := l.now()
		h := &hold{conn: l.conn, lock: zk.NewLock(l.conn, "/locktest-zk/"+name, zk.WorldACL(zk.PermAll))}
		if err := h.lock.Lock(); err != nil {
			return nil, err
		}
		var expired int
		if h.cut, expired = l.now(); expired == before && h.Held() {
			return h, nil
		}
		if err := h.Release(ctx); err != nil { // it is not certain that the lock is held
			return nil, err
		}
	}
}

func (l *library) Close() error {
	l.conn.Close()
	return nil
}

type hold struct {
	conn *zk.Conn
	lock *zk.Lock
	cut  <-chan struct{}
}

func (h *hold) Token() string         { return "" }
func (h *hold) Lost() <-chan struct{} { return h.cut }

func (h *hold) Held() bool {
	select {
	case <-h.cut:
		return false
	default:
		return h.conn.State() == zk.StateHasSession
	}
}

// Release deletes the lock's node. It goes on over lost connections, as a node that is left blocks the
// name as long as the session lives. After the end of the session there is no such node.
func (h *hold) Release(ctx context.Context) error {
	for {
		err := h.lock.Unlock()
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
