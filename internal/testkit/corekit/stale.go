package corekit

import (
	"slices"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// lag is by how much a server lags for Stale: longer than a test looks at it.
const lag = 2 * time.Second

// Stale is the method of drivertest.Staler on an ensemble in memory. It needs three servers: the leader
// cannot lag, and the server of the session has to go on.
func Stale(e *memdriver.Ensemble, s driver.Session, change func()) (heal func(), ok bool) {
	servers, control := memcontrol.Of(e).Servers(), memcontrol.Of(e)
	behind := slices.IndexFunc(servers, func(addr string) bool { return addr != s.Server() && addr != servers[e.Leader()] })
	if behind < 0 {
		return nil, false
	}
	control.Lag(behind, lag)
	change()
	var cuts []memdriver.Cut
	for i := range servers {
		if i != behind {
			cuts = append(cuts, memdriver.BetweenSession(s.ID(), i).Reset())
		}
	}
	e.Partition(cuts...)
	return sync.OnceFunc(func() {
		control.Lag(behind, 0)
		e.Heal(cuts...)
	}), true
}
