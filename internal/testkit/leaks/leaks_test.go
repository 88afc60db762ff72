package leaks

import (
	"strings"
	"testing"
	"time"
)

// A goroutine that ends is not a leak, one that stays is, and one that was there before is not.
func TestFind(t *testing.T) {
	before := Now()
	end := make(chan struct{})
	go func() { <-end }()
	with := Now()
	if err := Find(with); err != nil {
		t.Error("a goroutine that was known is found:", err)
	}
	defer func(d time.Duration) { patience = d }(patience)
	patience = 20 * time.Millisecond
	if err := Find(before); err == nil || !strings.Contains(err.Error(), "1 goroutines are left") || !strings.Contains(err.Error(), "TestFind") {
		t.Errorf("a goroutine that stays is not found: %v", err)
	}
	patience = time.Minute
	close(end)
	if err := Find(before); err != nil {
		t.Error("a goroutine that has ended is found:", err)
	}
}
