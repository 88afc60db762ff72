package zklock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/deadlock"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// clientCore is what the acquisitions and the locks of a client need of it.
type clientCore struct {
	cfg      clientSettings
	hooks    Hooks
	pool     *session.Pool[*place.WatchedDesk]
	local    *local.Queues
	counters counters

	deadlocks *deadlock.Detector
	observers atomic.Pointer[[]*observer] // nil before the first: see observe
}

// observer is a function that control.Observe has added.
type observer func(ctx context.Context, wants []place.Want, try bool)

// clientSettings has the settings of a Client. They are checked.
type clientSettings struct {
	local.QueueSettings // for local queues, places and sessions
	acquireStacks       bool
	servers             string // the scheme and the servers of the URL; "" for a Connector
	driverOptions       []any
	deadlockTimeout     time.Duration
}

// counters are totals since the client was opened.
type counters struct {
	acquired, failed, contended, lost atomic.Uint64
	handovers, forgotten, reaped      atomic.Uint64
	deadlocks                         atomic.Uint64
	waited                            atomic.Int64
}
