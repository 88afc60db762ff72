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

// rules are the settings that a client uses after it was opened.
type rules struct {
	place.Settings // for places and sessions

	handoverLimit int           // 0: no hand-over, and readers do not share places
	handoverTime  time.Duration // 0: likewise

	keep    time.Duration // 0: no place is kept between two uses
	keepMax int

	maxWaiters int // 0: no limit
	maxNames   int // 0: no limit

	acquireStacks bool
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
