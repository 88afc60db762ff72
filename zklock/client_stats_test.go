package zklock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatsShowTheLongestHoldAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		if s := c.Stats(); s.LongestHold != 0 || s.LongestWait != 0 {
			t.Errorf("Stats of a client without locks: %+v", s)
		}
		l, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = c.Mutex("a").Acquire(ctx) })
			time.Sleep(time.Second)
		}
		if s := c.Stats(); s.LongestHold != 4*time.Second || s.LongestWait != 2*time.Second {
			t.Errorf("longest hold %v, longest wait %v; want 4s and 2s", s.LongestHold, s.LongestWait)
		}
		cancel()
		wg.Wait()
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.LongestHold != 0 || s.LongestWait != 0 {
			t.Errorf("Stats after the release: %+v", s)
		}
	})
}
