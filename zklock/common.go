package zklock

import (
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// common is what all parts of a client use. None of it knows of any of them.
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
