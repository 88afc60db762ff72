package zklock

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/deadlock"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// shared is what the acquisitions and the locks of a client need of it.
type shared struct {
	cfg      config
	hooks    Hooks
	pool     *session.Pool[*place.Session]
	local    *local.Queues
	counters counters

	deadlocks *deadlock.Detector
	observers atomic.Pointer[[]*observer] // nil before the first: see observe
}

// observer is a function that control.Observe has added.
type observer func(ctx context.Context, wants []place.Want, try bool)

// observe implements control.Observe. Unlike hooks, an observer can come to a client that is open.
func observe(c *Client, f func(context.Context, []place.Want, bool)) (stop func()) {
	o := (*observer)(&f)
	c.changeObservers(func(l []*observer) []*observer { return append(l, o) })
	return func() {
		c.changeObservers(func(l []*observer) []*observer {
			return slices.DeleteFunc(l, func(other *observer) bool { return other == o })
		})
	}
}

// changeObservers replaces the list of observers, which acquisitions read without a mutex.
func (s *shared) changeObservers(change func([]*observer) []*observer) {
	for {
		old := s.observers.Load()
		var list []*observer
		if old != nil {
			list = slices.Clone(*old)
		}
		if list = change(list); s.observers.CompareAndSwap(old, &list) {
			return
		}
	}
}

// observed calls the observers. Without any it costs one load.
func (a *acquisition) observed(ctx context.Context) {
	if list := a.client.observers.Load(); list != nil {
		for _, o := range *list {
			(*o)(ctx, a.Wants, a.Try)
		}
	}
}

// config has the settings of a Client. They are checked.
type config struct {
	local.Settings  // for local queues, places and sessions
	acquireStacks   bool
	driverOptions   []any
	deadlockTimeout time.Duration
}

// counters are totals since the client was opened.
type counters struct {
	acquired, failed, contended, lost atomic.Uint64
	handovers, forgotten, reaped      atomic.Uint64
	deadlocks                         atomic.Uint64
	waited                            atomic.Int64
}
