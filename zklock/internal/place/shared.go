package place

import (
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Shared holds what all places of a client share.
type Shared struct {
	cfg     *Settings
	parents parents
	zxids   zxids
}

// NewShared returns the Shared of a client with these settings, which must not change any
// more. Serve is called before any place is taken.
func NewShared(cfg *Settings) *Shared { return &Shared{cfg: cfg} }

// TokensRegressed reports whether the ensemble's transaction ids have run backwards.
func (sh *Shared) TokensRegressed() bool { return sh.zxids.regressed.Load() }

// zxids keeps track of the ids of the transactions that create queue nodes. Tokens are
// made of these ids.
type zxids struct {
	newest    atomic.Int64
	regressed atomic.Bool // a later transaction had no larger id: tokens cannot be trusted any more
}

// Origin describes the request that a place was taken for. It goes into the data of the
// queue nodes, where other clients read it.
type Origin struct {
	Label, Trace string // WithLabel's label, and the trace context that the Inject hook returned
	Since        int64  // when the request began, in milliseconds since the Unix epoch
}

// nodeData returns the data for the queue nodes of a request. They do not describe it if the
// place may be kept: see describe.
func (sh *Shared) nodeData(o Origin, mode queue.Mode, keep bool) queue.Data {
	d := queue.Data{Host: sh.cfg.Host, PID: sh.cfg.PID, Mode: mode.String(), Keep: keep}
	if !keep {
		d.Label, d.Since, d.Trace = o.Label, o.Since, o.Trace
	}
	return d
}
