package run

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestTimingOfASession(t *testing.T) {
	for _, c := range []struct {
		timeout, least, wanted time.Duration
		grace, margin          time.Duration
		note, err              bool
	}{
		{timeout: 30 * time.Second, least: 16500 * ms, wanted: -1, grace: 5 * time.Second, margin: 600 * ms},
		{timeout: 10 * time.Second, least: 6 * time.Second, wanted: -1, grace: 2500 * ms, margin: 200 * ms},
		{timeout: 30 * time.Second, least: 16500 * ms, wanted: 0, grace: 0, margin: 600 * ms},
		{timeout: 30 * time.Second, least: 16500 * ms, wanted: 13 * time.Second, grace: 13 * time.Second, margin: 600 * ms},
		{timeout: 30 * time.Second, least: 16500 * ms, wanted: 15 * time.Second, grace: 13900 * ms, margin: 600 * ms, note: true},
		{timeout: 30 * time.Second, least: 16500 * ms, wanted: 15*time.Second + 1, err: true},
		{timeout: 1500 * ms, least: 500 * ms, wanted: -1, grace: 300 * ms, margin: 100 * ms}, // capped, but the user has not asked for more
		{timeout: 600 * ms, least: 100 * ms, wanted: -1, grace: 0, margin: 100 * ms},
	} {
		got, note, err := NewTiming(c.timeout, c.least, c.wanted)
		if (err != nil) != c.err {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && (got.Grace != c.grace || got.Margin != c.margin || (note != "") != c.note) {
			t.Errorf("%+v: %+v, %q", c, got, note)
		}
		if err == nil && got.Grace > 0 && !got.Ready(c.least) {
			t.Errorf("%+v: the command would never start", c)
		}
	}
}

// TestTimingDemands: the demands follow one another as the lease gets shorter, and each lasts at
// least as long as demands has said.
func TestTimingDemands(t *testing.T) {
	timing := Timing{Grace: 5 * time.Second, Margin: 600 * ms}
	last := nothing
	for left := 20 * time.Second; left > -time.Second; left -= 100 * ms {
		got, wait := timing.demands(left)
		want := nothing
		switch {
		case left <= 600*ms:
			want = kill
		case left <= 5600*ms:
			want = terminate
		}
		if got != want || got < last {
			t.Fatalf("with %v left: %v after %v, want %v", left, got, last, want)
		}
		if next, _ := timing.demands(left - wait); got != kill && (wait <= 0 || next == got) {
			t.Fatalf("with %v left: %v for %v, and then %v", left, got, wait, next)
		}
		if same, _ := timing.demands(left - wait + 1); got != kill && same != got {
			t.Fatalf("with %v left: %v ends before %v", left, got, wait)
		}
		last = got
	}
}
