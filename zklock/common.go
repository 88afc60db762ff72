package zklock

import (
	"sync/atomic"
	"time"
)

// common is what all parts of a client use. None of it knows of any of them.
type common struct {
	cfg      config
	counters counters
	parents  parents
	zxids    zxids
}

// counters is what is only ever added to.
type counters struct {
	acquired, failed, contended, lost atomic.Uint64
	handovers, forgotten              atomic.Uint64
	waited                            atomic.Int64
}

// wait counts a wait for another holder; 0 if there was none.
func (c *counters) wait(d time.Duration) {
	if d > 0 {
		c.contended.Add(1)
		c.waited.Add(int64(d))
	}
}

// zxids watches over the ids of the transactions that create queue nodes, which tokens
// are made of.
type zxids struct {
	newest    atomic.Int64
	regressed atomic.Bool // a later one had a smaller id: tokens cannot be trusted any more
}
