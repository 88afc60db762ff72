package zklock

import (
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// common is what all parts of a client use. It refers to none of them.
type common struct {
	places   *place.Shared
	cfg      rules
	counters counters
}

func newCommon(cfg rules) *common {
	c := &common{cfg: cfg}
	c.places = place.NewShared(&c.cfg.Settings)
	return c
}

// counters are totals since the client was opened.
type counters struct {
	acquired, failed, contended, lost atomic.Uint64
	handovers, forgotten              atomic.Uint64
	waited                            atomic.Int64
}

// wait counts a wait of length d for another holder; 0: there was none.
func (c *counters) wait(d time.Duration) {
	if d > 0 {
		c.contended.Add(1)
		c.waited.Add(int64(d))
	}
}
