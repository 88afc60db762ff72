package holding

import (
	"testing"
	"testing/synctest"
	"time"
)

// A panic reaches the caller while the log of its stack is stuck: the caller holds a lock.
func TestAsideDoesNotWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		got := Aside(func() error { panic("no") }, func(any, string) { <-gate })
		select {
		case o := <-got:
			defer func() {
				if v := recover(); v != "no" {
					t.Errorf("recovered %v, want the panic", v)
				}
			}()
			defer close(gate)
			_ = o.Return()
		case <-time.After(time.Minute):
			t.Error("no outcome after a minute")
			close(gate)
		}
	})
}
