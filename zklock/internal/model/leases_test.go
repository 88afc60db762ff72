package model

import (
	"testing"
	"time"
)

// aligned has only times of whole units, and a margin of less than a unit.
var aligned = Leases{Unit: time.Second, Timeout: 5, Tick: 2, Outstanding: 1}

// slipping lets the client's clock stand still for a unit, which is a little less than the
// margin.
var slipping = Leases{Unit: 50 * time.Millisecond, Timeout: 5, Tick: 1, Outstanding: 1, Slips: 1}

// deposing lets the client stay with a leader that was deposed.
var deposing = Leases{Unit: time.Second, Timeout: 4, Tick: 1, Outstanding: 1, Elections: 1, Reconnects: 2}

func TestLeaseOutlivesNoSession(t *testing.T) {
	overlapping := aligned
	overlapping.Timeout, overlapping.Tick, overlapping.Outstanding = 4, 1, 2
	for _, c := range []struct {
		name   string
		sys    Leases
		states int // how many it has: that does not depend on the machine
	}{
		{"one leader", aligned, 199996},
		{"overlapping requests", overlapping, 188168},
		{"a slow clock", slipping, 98624},
		{"a deposed leader", deposing, 168920},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := holds(t, c.sys, smallBounds())
			if underRace || t.Failed() {
				return
			}
			if !r.Complete {
				t.Error("the configuration is not small: not all of its states were explored")
			}
			if r.States != c.states && !testing.Short() { // in the mutants' runs, which have -short, only a broken invariant counts
				t.Errorf("%d states, want %d", r.States, c.states)
			}
		})
	}
}

func TestLeaseGuardsAreNeeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		sys     Leases
		without LeaseGuard
	}{
		{"the tick between j and p", aligned, TickBetween},
		{"commits only", deposing, CommitsOnly},
		{"exchanges before the write", aligned, EarlierExchanges},
		{"an exchange before the one before", aligned, ExchangeBefore},
		{"sent, not answered", aligned, SentNotAnswered},
		{"a reconnect proves nothing", deposing, ReconnectsProveNo},
		{"the margin", slipping, Margin},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.sys.Without = c.without
			breaks(t, c.sys)
		})
	}
}
