// Command zklock is the worker of locktest for zklock.
//
// It uses mutexes as README.md shows them, or what else its argument names: see modes.go. The signal of loss
// is Lock.Done; before it writes, work asks Lock.Valid, as docs/guarantees.md says under "Holding". The
// environment variable LOCKTEST_ZKLOCK has further keys of the URL, such as handover_limit=0&tick_time=2s, which replace
// the worker's.
package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func main() { worker.Main(open) }

// open opens a client. The servers' ticks are those of locktest's ensemble.
func open(_ context.Context, s worker.Settings) (worker.Library, error) {
	m, err := chosen(os.Args[1:])
	if err != nil {
		return nil, err
	}
	url, err := urlOf(s, m, os.Getenv("LOCKTEST_ZKLOCK"))
	if err != nil {
		return nil, err
	}
	client, err := zklock.Open(url)
	return library{client, m.acquire}, err
}

// urlOf is the URL of a mode, with more keys.
func urlOf(s worker.Settings, m mode, more string) (string, error) {
	keys, err := url.ParseQuery("tick_time=500ms&session_timeout=" + s.TTL.String() + m.keys)
	if err != nil {
		return "", err
	}
	others, err := url.ParseQuery(more)
	if err != nil {
		return "", fmt.Errorf("LOCKTEST_ZKLOCK: %w", err)
	}
	maps.Copy(keys, others)
	return "zk://" + strings.Join(s.Servers, ",") + m.root + "?" + keys.Encode(), nil
}

type library struct {
	client  *zklock.Client
	acquire acquire
}

// Acquire waits for the lock, with a context that carries the locks that its client holds, as docs/guarantees.md
// says under "Deadlocks".
func (l library) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	for _, h := range worker.Holding(ctx) {
		inner, cancel := h.(hold).lock.Context(ctx)
		defer cancel()
		ctx = inner
	}
	var lock *zklock.Lock
	var err error
	switch asked := worker.Request(ctx); {
	case asked.Shared:
		lock, err = l.client.RWMutex(name).Reader().Acquire(ctx)
	case asked.Permits > 0:
		lock, err = l.client.Semaphore(name, asked.Permits).Acquire(ctx)
	default:
		lock, err = l.acquire(ctx, l.client, name)
	}
	if err != nil {
		return nil, err
	}
	return hold{lock}, nil
}

func (l library) Close() error { return l.client.Close() }

type hold struct{ lock *zklock.Lock }

func (h hold) Token() string                     { return h.lock.Token().String() }
func (h hold) Held() bool                        { return h.lock.Valid() }
func (h hold) Lost() <-chan struct{}             { return h.lock.Done() }
func (h hold) Release(ctx context.Context) error { return h.lock.Release(ctx) }
