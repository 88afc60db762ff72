package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// A request has nearly all of its time, even if it shares its context with earlier requests,
// and never more.
func TestRequestsShareADeadlineThatLeavesThemTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 * time.Second
		var d deadline
		contexts := make(map[any]int)
		for range 100 {
			ctx := d.context(t.Context(), limit)
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left > limit || left < limit*7/8 {
				t.Fatalf("a request has %v left, want between %v and %v", left, limit*7/8, limit)
			}
			if ctx.Err() != nil {
				t.Fatalf("the context of a new request has ended already: %v", ctx.Err())
			}
			contexts[ctx]++
			time.Sleep(limit / 80)
		}
		if n := len(contexts); n < 10 || n > 11 {
			t.Errorf("100 requests within ten eighths of the limit had %d contexts, want 10 or 11", n)
		}
		last := d.context(t.Context(), limit)
		time.Sleep(limit)
		synctest.Wait()
		if last.Err() == nil {
			t.Error("the context of a request has not ended after the limit")
		}
	})
}
