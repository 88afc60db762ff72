package model

import (
	"testing"
	"time"
)

// TestLarge explores large configurations, one after the other, since each needs much memory.
func TestLarge(t *testing.T) {
	all := []struct {
		name string
		sys  Leases
	}{
		{"a deposed leader, overlapping requests", Leases{Unit: time.Second, Timeout: 6, Tick: 2, Outstanding: 2, Elections: 1, Reconnects: 1}},
		{"a deposed leader, a slow clock", Leases{Unit: 50 * time.Millisecond, Timeout: 8, Tick: 2, Outstanding: 1, Elections: 1, Reconnects: 1, Slips: 1}},
		{"two elections, two reconnects", Leases{Unit: time.Second, Timeout: 5, Tick: 1, Outstanding: 1, Elections: 2, Reconnects: 2}},
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { holds(t, c.sys, largeBounds(t, len(all)+1)) })
	}
	t.Run("four numbers of permits, old clients", func(t *testing.T) {
		holds(t, Semaphores{Contenders: 5, Numbers: []int8{1, 2, 3, 4}, Old: true}, largeBounds(t, len(all)+1))
	})
}
