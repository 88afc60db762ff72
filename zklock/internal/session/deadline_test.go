package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// A request has nearly all of its time, whoever it shares a context with, and no more.
func TestRequestsShareADeadlineThatLeavesThemTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 * time.Second
		var d deadline
		contexts := make(map[any]int)
		for range 100 {
			ctx := d.context(t.Context(), limit)
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left > limit || left < limit*7/8 {
				t.Fatalf("a request has %v of %v", left, limit)
			}
			if ctx.Err() != nil {
				t.Fatalf("a request begins on a context that has ended: %v", ctx.Err())
			}
			contexts[ctx]++
			time.Sleep(limit / 80)
		}
		if n := len(contexts); n < 10 || n > 11 {
			t.Errorf("100 requests in ten times an eighth of the limit had %d contexts", n)
		}
		last := d.context(t.Context(), limit)
		time.Sleep(limit)
		synctest.Wait()
		if last.Err() == nil {
			t.Error("a request may take more than its time")
		}
	})
}
