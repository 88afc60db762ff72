// Command etcd is the worker of locktest for the package concurrency of go.etcd.io/etcd/client/v3.
//
// The documentation of Session.Done says when it closes: that is the signal of loss. The proto of etcd's lock
// service says that two acquisitions with one lease count as one. So each acquisition has a session of its
// own at a time, as in the package's ExampleMutex_Lock. Its lease has the TTL, by WithTTL. The token is the
// revision of Mutex.Header: "Notes on the usage of lock and lease", on etcd's page "etcd versus other key-value
// stores", has what a lock protects validate a version, and takes the revision for the fencing token. The example
// contrib/lock of its repository sends the id of the lease, which has each lock with a lease of its own; here a
// lease serves one lock after the other, and its id says nothing about their order.
package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

func main() { worker.Main(open) }

// open opens a client. By its keepalives it leaves a server that does not answer, as the documentation of
// clientv3.Config says of DialKeepAliveTime; gRPC takes no less than 10 seconds, which is too late for a short TTL. A session believes in its lease for
// DialTimeout and a second, until the first answer to a keepalive: that must be no longer than the TTL.
func open(_ context.Context, s worker.Settings) (worker.Library, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: s.Servers, DialTimeout: max(s.TTL/4, s.TTL-time.Second), Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: s.TTL / 4,
	})
	return &library{client: client, ttl: int(max(1, s.TTL/time.Second))}, err
}

type library struct {
	client *clientv3.Client
	ttl    int // seconds

	mu   sync.Mutex
	idle []*concurrency.Session // those that no acquisition uses; guarded by mu
}

// session returns a session for one acquisition: an idle one, or a new one.
func (l *library) session() (*concurrency.Session, error) {
	l.mu.Lock()
	for n := len(l.idle); n > 0; n = len(l.idle) {
		s := l.idle[n-1]
		l.idle = l.idle[:n-1]
		if !over(s) {
			l.mu.Unlock()
			return s, nil
		}
	}
	l.mu.Unlock()
	return concurrency.NewSession(l.client, concurrency.WithTTL(l.ttl))
}

// put takes a session back. After an error it closes it, since its lease may have a key. That of a session that is over ends by itself.
func (l *library) put(s *concurrency.Session, err error) error {
	if over(s) {
		return err
	}
	if err != nil {
		_ = s.Close() // if that fails, the lease ends by itself
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, s)
	return nil
}

// over reports whether a session has ended, or is not kept alive any more.
func over(s *concurrency.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// Acquire waits for the lock, at most until its session ends.
func (l *library) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	s, err := l.session()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ctx(), cancel)()
	m := concurrency.NewMutex(s, "/locktest/"+name)
	if err := m.Lock(clientv3.WithRequireLeader(ctx)); err != nil {
		if over(s) {
			err = fmt.Errorf("the session ended while it waited: %w", err)
		}
		return nil, l.put(s, err)
	}
	return &hold{l, s, m}, nil
}

func (l *library) Close() error { return l.client.Close() }

type hold struct {
	library *library
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (h *hold) Token() string         { return strconv.FormatInt(h.mutex.Header().Revision, 10) }
func (h *hold) Held() bool            { return !over(h.session) }
func (h *hold) Lost() <-chan struct{} { return h.session.Done() }

func (h *hold) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(h.library.ttl)*time.Second)
	defer cancel()
	err := h.mutex.Unlock(ctx)
	if err != nil {
		err = fmt.Errorf("release: %w", err)
	}
	return h.library.put(h.session, err)
}
