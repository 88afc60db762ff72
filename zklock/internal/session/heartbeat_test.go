package session

import (
	"testing"
	"time"
)

// TestPauseText: a process that was stopped and a machine that was suspended are distinguished.
// A heart that is a little late was only busy.
func TestPauseText(t *testing.T) {
	const least = 1250 * time.Millisecond
	for _, c := range []struct {
		late, suspended time.Duration
		want            string
	}{
		{-time.Second, 0, ""},
		{1200 * time.Millisecond, 0, ""},
		{11270 * time.Millisecond, 0, "this process did not run for at least 11.2s (it was stopped, throttled or paused)"},
		{11270 * time.Millisecond, time.Second, "this process did not run for at least 11.2s (it was stopped, throttled or paused)"},
		{11270 * time.Millisecond, 12 * time.Second, "the machine was suspended for 12s"},
		{500 * time.Millisecond, time.Second, ""},
	} {
		if got := pauseText(c.late, c.suspended, least); got != c.want {
			t.Errorf("late by %v, suspended for %v: %q, want %q", c.late, c.suspended, got, c.want)
		}
	}
}
