package gocronlock

import "time"

// slotOf returns the slot of a time. The text has a fixed length, so that later slots are
// greater.
func slotOf(t time.Time, d time.Duration) string {
	return t.UTC().Round(d).Format("2006-01-02T15:04:05.000000000Z")
}
