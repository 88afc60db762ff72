package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestLocksOfAKilledProcessAreFreeAfterItsSession: with the default settings, on servers with ticks of 2 s, the locks of a process that is
// killed are free 29 to 33 s later, at whatever moment between its heartbeats and the servers' ticks it dies. README has these numbers.
func TestLocksOfAKilledProcessAreFreeAfterItsSession(t *testing.T) {
	const (
		soonest, latest = 29 * time.Second, 33 * time.Second
		step            = 170 * time.Millisecond
	)
	least, most := time.Hour, time.Duration(0)
	for moment := time.Duration(0); moment < 12*time.Second; moment += step {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
			defer e.Close()
			open := func() *zklock.Client {
				c, err := zklock.OpenConnector(e.Connector())
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			first, second := open(), open()
			held := mustLock(t)(first.Mutex("x").Acquire(t.Context()))
			sessions := e.Sessions()
			time.Sleep(time.Minute + moment)
			next := acquiring(t, second.Mutex("x"), t.Context())
			time.Sleep(10 * time.Millisecond)
			var thaw []func()
			for _, s := range sessions { // those of the first client
				thaw = append(thaw, e.Freeze(s))
			}
			killed := time.Now()
			l := <-next
			took := time.Since(killed)
			least, most = min(least, took), max(most, took)
			if held.Valid() {
				t.Error("the lock of the process is valid while the next one has it")
			}
			for _, f := range thaw {
				f()
			}
			mustRelease(t, l)
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("the locks were free %v to %v after the kill", least, most)
	if least < soonest || most > latest {
		t.Errorf("the locks were free %v to %v after the kill, want %v to %v", least, most, soonest, latest)
	}
}
