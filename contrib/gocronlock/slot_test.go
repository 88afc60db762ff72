package gocronlock

import (
	"testing"
	"time"
)

// A slot is the time rounded, so that clocks on both sides of a full minute have the same one.
// Later slots are greater as texts.
func TestSlotOf(t *testing.T) {
	full := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	slot := slotOf(full, time.Minute)
	if slot != "2026-03-01T11:00:00.000000000Z" {
		t.Errorf("the slot is %q", slot)
	}
	for _, d := range []time.Duration{-30 * time.Second, -time.Nanosecond, time.Nanosecond, 29 * time.Second} {
		if got := slotOf(full.Add(d), time.Minute); got != slot {
			t.Errorf("the slot %v from the full minute is %q, want %q", d, got, slot)
		}
	}
	for d := time.Duration(1); d < 10_000*time.Hour; d *= 10 {
		if before, after := slotOf(full, d), slotOf(full.Add(d), d); before >= after {
			t.Errorf("with slots of %v, %q is not below %q", d, before, after)
		}
	}
}
