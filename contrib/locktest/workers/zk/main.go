// Command zk is the worker of locktest for zk.Lock of github.com/go-zookeeper/zk.
//
// The library's documentation has no word about the loss of a lock. So the worker does what ZooKeeper's
// programmer's guide asks of the holder of an ephemeral node: it takes a lock as lost as soon as its
// connection reports StateDisconnected or StateExpired, whichever is first. zk.Lock has no token.
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

	mu  sync.Mutex
	cut chan struct{} // closed, and replaced, when the connection or the session ends; guarded by mu
}

// event is called with all events of the connection, in their order.
func (l *library) event(e zk.Event) {
	if e.Type != zk.EventSession || e.State != zk.StateDisconnected && e.State != zk.StateExpired {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.cut)
	l.cut = make(chan struct{})
}

// Acquire waits for the lock. Lock takes no context: Close ends it.
func (l *library) Acquire(_ context.Context, name string) (worker.Hold, error) {
	lock := zk.NewLock(l.conn, "/locktest-zk/"+name, zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &hold{library: l, lock: lock, session: l.conn.SessionID(), cut: l.cut}, nil
}

func (l *library) Close() error {
	l.conn.Close()
	return nil
}

type hold struct {
	library *library
	lock    *zk.Lock
	session int64
	cut     <-chan struct{}
}

func (h *hold) Token() string         { return "" }
func (h *hold) Lost() <-chan struct{} { return h.cut }

func (h *hold) Held() bool {
	select {
	case <-h.cut:
		return false
	default:
		return h.library.conn.State() == zk.StateHasSession
	}
}

// Release deletes the lock's node. It goes on over lost connections, as a node that is left blocks the
// name as long as the session lives. With the session of the lock, its node has gone.
func (h *hold) Release(ctx context.Context) error {
	for {
		err := h.lock.Unlock()
		if err == nil || errors.Is(err, zk.ErrNoNode) || h.library.conn.SessionID() != h.session {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
