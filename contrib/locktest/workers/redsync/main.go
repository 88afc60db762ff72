// Command redsync is the worker of locktest for github.com/go-redsync/redsync/v4.
//
// The servers are independent, and a lock needs most of them, as the page "Distributed Locks with Redis" of
// Redis says under "The Redlock Algorithm", which redsync's package documentation names. Under "Making the
// algorithm more reliable" the page lets long work extend the lock, within the time for which it is valid: redsync
// has Mutex.Extend for that and does not call it by itself, so the worker calls it each third of the TTL, and soon again after a failure.
// Locktest limits how long work lasts, as the page asks. The signal of loss is Mutex.Until, the end of that time, as the documentation of Mutex.Valid says; or ErrTaken of Extend: most
// servers do not have the lock any more. The options of the lock are redsync's defaults. Redsync has no fencing token.
package main

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

func main() { worker.Main(open) }

// open opens a client for each server. Redsync limits the requests of Lock by contexts, since the page asks for a limit that is
// small next to the TTL. A client of go-redis obeys a context's deadline with ContextTimeoutEnabled only.
func open(_ context.Context, s worker.Settings) (worker.Library, error) {
	l := &library{ttl: s.TTL}
	var pools []redsyncredis.Pool
	for _, addr := range s.Servers {
		c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		l.clients = append(l.clients, c)
		pools = append(pools, goredis.NewPool(c))
	}
	l.sync = redsync.New(pools...)
	return l, nil
}

type library struct {
	ttl     time.Duration
	clients []*redis.Client
	sync    *redsync.Redsync
}

// Acquire tries until the lock is granted, as redsync gives up after a number of tries, 32 by default. A client
// that holds another lock gets that as an error, so that it can release what it holds.
func (l *library) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	m := l.sync.NewMutex("locktest/"+name, redsync.WithExpiry(l.ttl))
	for {
		err := m.LockContext(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil || len(worker.Holding(ctx)) > 0 {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &hold{mutex: m, ttl: l.ttl, until: m.Until(), cancel: cancel, ended: make(chan struct{}), lost: make(chan struct{})}
	go h.extend(ctx)
	return h, nil
}

func (l *library) Close() error {
	var err error
	for _, c := range l.clients {
		err = cmp.Or(err, c.Close())
	}
	return err
}

type hold struct {
	mutex  *redsync.Mutex // used by extend, and by Release after that
	ttl    time.Duration
	cancel context.CancelFunc
	ended  chan struct{} // closed when extend has returned
	lost   chan struct{} // closed when the lock is not valid any more

	mu    sync.Mutex
	until time.Time // guarded by mu
}

// extend extends the lock each third of the TTL, until ctx ends or the lock is not valid any more. Redsync waits for all servers and
// has no limit of its own there. This one keeps a server that does not answer from holding up what the others have extended.
func (h *hold) extend(ctx context.Context) {
	defer close(h.ended)
	for wait := h.ttl / 3; ; {
		select {
		case <-time.After(min(wait, time.Until(h.valid()))):
		case <-ctx.Done():
			return
		}
		if !h.Held() {
			close(h.lost)
			return
		}
		limited, cancel := context.WithTimeout(ctx, min(h.ttl/8, time.Until(h.valid())))
		ok, err := h.mutex.ExtendContext(limited)
		cancel()
		h.mu.Lock()
		wait = h.ttl / 20
		var taken *redsync.ErrTaken
		switch {
		case ok && err == nil && time.Now().Before(h.until):
			h.until, wait = h.mutex.Until(), h.ttl/3
		case errors.As(err, &taken):
			h.until = time.Time{}
		}
		h.mu.Unlock()
	}
}

func (h *hold) valid() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

func (h *hold) Token() string         { return "" }
func (h *hold) Held() bool            { return time.Now().Before(h.valid()) }
func (h *hold) Lost() <-chan struct{} { return h.lost }

// Release gives the lock back. After the TTL it is free without that.
func (h *hold) Release(ctx context.Context) error {
	h.cancel()
	<-h.ended
	ctx, cancel := context.WithTimeout(ctx, h.ttl)
	defer cancel()
	_, err := h.mutex.UnlockContext(ctx)
	return err
}
