package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

var redis = peer{
	binary: "redis-server",
	args: func(_ string, ports []pair, i int) []string {
		// Without snapshots, which the server writes by default from time to time.
		return []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(ports[i].clients), "--save", "", "--appendonly", "no"}
	},
	ready: func(ctx context.Context, addr string) (string, error) {
		c := goredis9.NewClient(&goredis9.Options{Addr: addr})
		defer c.Close()
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return "", err
		}
		_, version, _ := strings.Cut(info, "redis_version:")
		version, _, _ = strings.Cut(version, "\r\n")
		return version, nil
	},
	module:  "github.com/go-redsync/redsync/v4",
	comment: "nothing is ever synced",
	open: func(addrs []string) (worker.Locker, error) {
		l := &redisLocker{}
		var pools []redsyncredis.Pool
		for _, addr := range addrs {
			c := goredis9.NewClient(&goredis9.Options{Addr: addr})
			l.clients = append(l.clients, c)
			pools = append(pools, goredis.NewPool(c))
		}
		l.sync = redsync.New(pools...)
		return l, nil
	},
}

// redisLocker has a lock when most of the servers, which know nothing of each other, have its key.
type redisLocker struct {
	clients []*goredis9.Client
	sync    *redsync.Redsync
}

// patience is the number of tries of redsync for a caller without a time limit: so many that it never
// gives up.
const patience = 1 << 20

func (l *redisLocker) Acquire(ctx context.Context, kind, name string, _ int) (func() error, error) {
	if kind != worker.Mutex {
		return nil, worker.ErrUnsupported
	}
	var opts []redsync.Option
	if _, limited := ctx.Deadline(); !limited {
		opts = append(opts, redsync.WithTries(patience))
	}
	m := l.sync.NewMutex("bench/"+name, opts...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := m.UnlockContext(context.WithoutCancel(ctx))
		return err
	}, nil
}

func (l *redisLocker) Try(context.Context, string) error { return worker.ErrUnsupported }

func (l *redisLocker) Prepare(int, bool) error { return nil }

func (l *redisLocker) Leave(int) {}

func (l *redisLocker) Close() {
	for _, c := range l.clients {
		_ = c.Close()
	}
}
