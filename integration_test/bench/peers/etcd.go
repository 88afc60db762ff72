package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

var etcd = peer{
	binary: "etcd",
	args: func(dir string, ports []pair, i int) []string {
		var members []string
		for j, p := range ports {
			members = append(members, fmt.Sprintf("m%d=http://127.0.0.1:%d", j, p.peers))
		}
		client, other := fmt.Sprintf("http://127.0.0.1:%d", ports[i].clients), fmt.Sprintf("http://127.0.0.1:%d", ports[i].peers)
		return []string{
			"--data-dir", dir, "--name", fmt.Sprintf("m%d", i), "--initial-cluster", strings.Join(members, ","),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", other, "--initial-advertise-peer-urls", other,
		}
	},
	ready: func(ctx context.Context, addr string) (string, error) {
		c, err := dialEtcd(addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		st, err := c.Status(ctx, addr)
		if err != nil {
			return "", err
		}
		return st.Version, nil
	},
	module:  "go.etcd.io/etcd/client/v3",
	comment: "fsync on",
	open: func(addrs []string) (worker.Locker, error) {
		c, err := dialEtcd(addrs...)
		if err != nil {
			return nil, err
		}
		return &etcdLocker{client: c}, nil
	},
}

func dialEtcd(addrs ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second})
}

// etcdLocker has a single session for goroutines that want different names. Goroutines that
// share a session do not exclude each other, so goroutines that want the same name have a
// session each.
type etcdLocker struct {
	client   *clientv3.Client
	sessions []*concurrency.Session // of each goroutine; nil after it left; grows in Prepare only
	oneName  bool
}

func (l *etcdLocker) Prepare(goroutines int, oneName bool) error {
	l.oneName = oneName
	if !oneName {
		goroutines = 1
	}
	l.sessions = append(l.sessions, make([]*concurrency.Session, max(0, goroutines-len(l.sessions)))...)
	for i := range goroutines {
		if l.sessions[i] != nil {
			continue
		}
		s, err := concurrency.NewSession(l.client)
		if err != nil {
			return err
		}
		l.sessions[i] = s
	}
	return nil
}

func (l *etcdLocker) Acquire(ctx context.Context, kind, name string, goroutine int) (func() error, error) {
	if kind != worker.Mutex {
		return nil, worker.ErrUnsupported
	}
	if !l.oneName {
		goroutine = 0
	}
	m := concurrency.NewMutex(l.sessions[goroutine], "/bench/"+name)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return m.Unlock(context.WithoutCancel(ctx)) }, nil
}

func (l *etcdLocker) Try(context.Context, string) error {
	return worker.ErrUnsupported
}

// Leave closes the goroutine's session, and so deletes a key that a call left whose time limit ended
// during the request.
func (l *etcdLocker) Leave(goroutine int) {
	if l.oneName {
		_ = l.sessions[goroutine].Close() // a session that cannot be closed expires
		l.sessions[goroutine] = nil
	}
}

func (l *etcdLocker) Close() {
	for _, s := range l.sessions {
		if s != nil {
			s.Orphan()
		}
	}
	_ = l.client.Close() // the keys are deleted with the server
}
