package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

var redis = peer{
	binary: "redis-server",
	args: func(dir string, port []int) []string {
		// Without snapshots, which the server writes by default from time to time.
		return []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port[0]), "--save", "", "--appendonly", "no"}
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
	comment: "one server, nothing is ever synced",
	open: func(addr string) (worker.Locker, error) {
		c := goredis9.NewClient(&goredis9.Options{Addr: addr})
		return &redisLocker{c, redsync.New(goredis.NewPool(c))}, nil
	},
}

type redisLocker struct {
	client *goredis9.Client
	sync   *redsync.Redsync
}

// patience is the number of tries of redsync: so many that it never gives up.
const patience = 1 << 20

func (l *redisLocker) Acquire(ctx context.Context, kind, name string, _ int) (func() error, error) {
	if kind != worker.Mutex {
		return nil, worker.ErrUnsupported
	}
	m := l.sync.NewMutex("bench/"+name, redsync.WithTries(patience), redsync.WithExpiry(10*time.Second))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := m.UnlockContext(ctx)
		return err
	}, nil
}

func (l *redisLocker) Try(context.Context, string) error { return worker.ErrUnsupported }

func (l *redisLocker) Prepare(int, bool) error { return nil }

func (l *redisLocker) Close() { _ = l.client.Close() }
