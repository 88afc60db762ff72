package model

import (
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"strings"
	"testing"
	"time"
)

func TestScratchLease(t *testing.T) {
	for _, m := range []Leases{
		{Unit: time.Second, Timeout: 6, Tick: 2, Outstanding: 1, Elections: 0},
		{Unit: time.Second, Timeout: 5, Tick: 1, Outstanding: 1, Elections: 1, Reconnects: 1},
		{Unit: time.Second, Timeout: 6, Tick: 2, Outstanding: 1, Elections: 1, Reconnects: 1},
		{Unit: 50 * time.Millisecond, Timeout: 8, Tick: 2, Outstanding: 1, Elections: 0, Slips: 1},
	} {
		r := Explore(m, Bounds{States: 3000000, For: 20 * time.Second})
		t.Logf("%+v: %v", m, r)
		if r.Violation != nil {
			t.Log(r.Violation, "\n"+strings.Join(r.Trace, "\n"))
		}
	}
}
func TestScratchLocks(t *testing.T) {
	x := []queue.Mode{queue.Exclusive}
	for _, m := range []Locks{
		{Clients: 2, Modes: x, Lag: 2},
		{Clients: 3, Modes: x, Lag: 2},
		{Clients: 2, Modes: x, Lag: 2, Reconnects: 1, Losses: 1},
		{Clients: 3, Modes: x, Lag: 2, Reconnects: 1, Losses: 1, Breaks: 1},
		{Clients: 2, Modes: x, Lag: 2, Reconnects: 1, Losses: 1, Late: 1},
		{Clients: 3, Modes: []queue.Mode{queue.Exclusive, queue.Shared}, Lag: 2, Downgrades: 1},
		{Clients: 4, Modes: []queue.Mode{queue.Permit}, Permits: 2, Lag: 1},
	} {
		r := Explore(m, Bounds{States: 3000000, For: 20 * time.Second})
		t.Logf("%+v: %v", m, r)
		if r.Violation != nil {
			t.Log(r.Violation, "\n"+strings.Join(r.Trace, "\n"))
		}
	}
}
