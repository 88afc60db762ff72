package place

import (
	"context"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Shared is what all places of a client share.
type Shared struct {
	cfg     *Settings
	parents parents
	zxids   zxids
	reaper  reaper
}

// NewShared returns what the places of one client share. Serve has to be called before any
// place is taken. cfg must not change any more.
func NewShared(cfg *Settings) *Shared { return &Shared{cfg: cfg} }

// Serve has the sessions of a pool ready for places. inUse tells of the paths of names
// that are in use.
func (c *Shared) Serve(pool *session.Pool, inUse func(path string) bool) {
	pool.Prepare = func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, c.cfg) }
	pool.Attend = func(s *session.Session) any { return newDesk(s, c) }
	c.reaper = reaper{parents: &c.parents, pool: pool, inUse: inUse}
	c.parents.made = c.reaper.start
}

// TokensRegressed reports whether the ensemble's transaction ids have run backwards.
func (c *Shared) TokensRegressed() bool { return c.zxids.regressed.Load() }

// zxids watches over the ids of the transactions that create queue nodes, which tokens
// are made of.
type zxids struct {
	newest    atomic.Int64
	regressed atomic.Bool // a later one had a smaller id: tokens cannot be trusted any more
}

// Origin is what others are told of the request that a place was taken for.
type Origin struct {
	Label, Trace string
	Since        int64 // milliseconds since the Unix epoch
}

// NodeData is what the queue nodes of a request hold.
func (c *Shared) NodeData(o Origin, mode queue.Mode) queue.Data {
	return queue.Data{Host: c.cfg.Host, PID: c.cfg.PID, Label: o.Label, Mode: mode.String(), Since: o.Since, Trace: o.Trace}
}
