package zklock

import (
	"context"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// shared is what all places of a client share.
type shared struct {
	cfg     *settings
	parents parents
	zxids   zxids
	reaper  reaper
}

func newShared(cfg *settings) *shared { return &shared{cfg: cfg} }

// serve has the sessions of a pool ready for places. inUse tells of the paths of names
// that are in use.
func (c *shared) serve(pool *session.Pool, inUse func(path string) bool) {
	pool.Prepare = func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, c.cfg) }
	pool.Attend = func(s *session.Session) any { return newDesk(s, c) }
	c.reaper = reaper{parents: &c.parents, pool: pool, inUse: inUse}
	c.parents.made = c.reaper.start
}

// tokensRegressed reports whether the ensemble's transaction ids have run backwards.
func (c *shared) tokensRegressed() bool { return c.zxids.regressed.Load() }

// zxids watches over the ids of the transactions that create queue nodes, which tokens
// are made of.
type zxids struct {
	newest    atomic.Int64
	regressed atomic.Bool // a later one had a smaller id: tokens cannot be trusted any more
}

// origin is what others are told of the request that a place was taken for.
type origin struct {
	label, trace string
	since        int64 // milliseconds since the Unix epoch
}

// nodeData is what the queue nodes of a request hold.
func (c *shared) nodeData(o origin, mode queue.Mode) queue.Data {
	return queue.Data{Host: c.cfg.host, PID: c.cfg.pid, Label: o.label, Mode: mode.String(), Since: o.since, Trace: o.trace}
}
