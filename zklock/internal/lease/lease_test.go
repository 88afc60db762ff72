package lease

import (
	"testing"
	"time"
)

// at returns an instant for the tests below.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

const sec = time.Second

func newLease() *Lease { return &Lease{Timeout: 10 * sec, Tick: 2 * sec} }

// proven returns the end of the lease that a touch at d proves with newLease's timeout:
// that much later, minus 1% and 5% of it.
func proven(d time.Duration) time.Time { return at(d + 10*sec - 600*time.Millisecond) }

func TestLeaseOfANewSessionCountsFromItsHandshake(t *testing.T) {
	l := newLease()
	l.Connected(at(1*sec), at(2*sec), true)
	if want := proven(1 * sec); !l.Until.Equal(want) {
		t.Fatalf("until %v, want %v", l.Until, want)
	}
}

func TestLeaseOfAReconnectWaitsForACommittedWrite(t *testing.T) {
	l := newLease()
	l.Connected(at(0), at(0), true)
	old := l.Until
	l.Connected(at(5*sec), at(6*sec), false)
	if !l.Until.Equal(old) {
		t.Fatalf("a reconnect alone moved the lease to %v", l.Until)
	}
	l.Acknowledged(at(7*sec), at(8*sec), false)
	if !l.Until.Equal(old) {
		t.Fatalf("a Sync moved the lease to %v: a deposed leader answers it", l.Until)
	}
	l.Acknowledged(at(5500*time.Millisecond), at(9*sec), true)
	if !l.Until.Equal(old) {
		t.Fatalf("a write sent before the handshake was answered moved the lease to %v", l.Until)
	}
	l.Acknowledged(at(8*sec), at(9*sec), true)
	if want := proven(5 * sec); !l.Until.Equal(want) {
		t.Fatalf("until %v, want %v", l.Until, want)
	}
}

func TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast(t *testing.T) {
	l := newLease()
	l.Connected(at(0), at(0), true)
	for i := 1; i <= 8; i++ {
		d := time.Duration(i) * sec
		l.Acknowledged(at(d), at(d+100*time.Millisecond), true)
	}
	// k was sent at 8s, p at 7s; the latest answered by 5s was sent at 4s.
	if want := proven(4 * sec); !l.Until.Equal(want) {
		t.Fatalf("until %v, want %v", l.Until, want)
	}
}

func TestLeaseIgnoresOverlappingWritesAsLinks(t *testing.T) {
	l := newLease()
	l.Connected(at(0), at(0), true)
	l.Acknowledged(at(1*sec), at(4*sec), true)
	l.Acknowledged(at(3*sec), at(5*sec), true) // sent before the first was answered
	if n := len(l.chain); n != 2 {
		t.Fatalf("the chain has %d exchanges, want two: the handshake and the first write", n)
	}
}

func TestLeaseChainIsBounded(t *testing.T) {
	l := newLease()
	l.Connected(at(0), at(0), true)
	for i := range 100_000 {
		d := time.Duration(i) * time.Millisecond
		l.Acknowledged(at(d), at(d), true)
	}
	if n := len(l.chain); n > chainSteps+2 {
		t.Fatalf("the chain has %d exchanges after 100,000 writes, want at most %d", n, chainSteps+2)
	}
	if got, want := l.Until, proven(95*sec); got.Before(want) {
		t.Fatalf("until %v after steady writes, want at least %v", got, want)
	}
}

// After an idle session's Syncs, its first write must prove a lease that is long enough
// for a grant: with the smallest timeout that a tick allows, and with usual timeouts.
func TestIdleSyncsLeaveEnoughLeaseForTheFirstWrite(t *testing.T) {
	for _, c := range []struct{ timeout, tick time.Duration }{
		{6 * sec, 2 * sec}, {9 * sec, 3 * sec}, {10 * sec, 3 * sec}, {10 * sec, 2 * sec}, {40 * sec, 2 * sec},
		{1500 * time.Millisecond, 500 * time.Millisecond},
	} {
		l := &Lease{Timeout: c.timeout, Tick: c.tick}
		l.Connected(at(0), at(0), true)
		every := l.SyncEvery()
		last := time.Duration(0)
		for d := every; d < 3*c.timeout; d += every {
			l.Acknowledged(at(d), at(d+time.Millisecond), false)
			last = d
		}
		write := last + every - time.Nanosecond // right before the next Sync
		l.Until = time.Time{}
		l.Acknowledged(at(write), at(write+time.Millisecond), true)
		if left := l.Until.Sub(at(write + time.Millisecond)); left < l.Least() || !l.Lasts(at(write+time.Millisecond)) {
			t.Errorf("timeout %v, tick %v: %v of the lease left after the first write, want at least %v, and that it lasts", c.timeout, c.tick, left, l.Least())
		}
	}
}

// TestLeaseLasts: Lasts reports whether a proven lease can be extended before it ends. Only then
// may it count. After a gap in the chain of exchanges, Lasts reports false for a tick.
func TestLeaseLasts(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	chain := func(exchanges ...int) *Lease {
		l := &Lease{Timeout: 10 * time.Second, Tick: 3 * time.Second}
		l.Connected(at(0), at(0), true)
		for _, ms := range exchanges {
			l.Acknowledged(at(ms), at(ms), false)
		}
		return l
	}
	now := at(60_000)
	steady := chain(52_000, 53_750, 55_500, 57_250, 59_000) // as an idle session sends them
	steady.Acknowledged(now, now, true)
	gap := chain(52_000, 53_000, 53_750, 59_990)
	gap.Acknowledged(now, now, true)
	for what, x := range map[string]struct {
		l    *Lease
		want bool
	}{"a steady chain": {steady, true}, "a chain with a gap": {gap, false}, "a new session": {chain(), false}} {
		left := x.l.Until.Sub(now)
		if got := x.l.Lasts(now); got != x.want {
			t.Errorf("%s: Lasts is %v with %v left, want %v", what, got, left, x.want)
		}
	}
	if l := chain(); !l.Lasts(at(100)) {
		t.Error("the lease of a new session does not last")
	}
	if left := gap.Until.Sub(now); left < gap.Least() {
		t.Errorf("%v are left of the chain with a gap, want enough for a grant", left)
	}
}
