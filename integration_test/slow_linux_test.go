package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// slowness makes real servers slow until over is closed. It returns where clients go, if not to the servers themselves.
type slowness func(t *testing.T, e *ensemble.Ensemble, over <-chan struct{}, all *sync.WaitGroup) (hosts string)

// TestSlowServersAreNotLeft: with the settings of users, servers are slow in each of the ways that are usual. Clients with
// the default session timeout and with 10 s hold locks and ask for others. No session moves, and with the defaults none is lost.
// This is the program that shows it:
//
//	ZKLOCK_LONG=1 ZKLOCK_SLOW=40s go test -count=1 -v -run='^TestSlowServersAreNotLeft$' ./integration_test
func TestSlowServersAreNotLeft(t *testing.T) {
	long.Test(t, "each way to be slow takes half a minute")
	ensemble.Require(t)
	window := long.Time(t, "ZKLOCK_SLOW", 0, 40*time.Second)
	for _, way := range []struct {
		what string
		slow slowness
	}{
		{"pauses of 1 s", pausing(time.Second)},
		{"an fsync of 1 s on one server", slowDisks(1, time.Second)},
		{"an fsync of 1 s on all", slowDisks(3, time.Second)},
		{"300 ms away", distant(300 * time.Millisecond)},
		{"four times the load", loaded(4)},
	} {
		t.Run(way.what, func(t *testing.T) {
			e := ensemble.Start(t, ensemble.Config{Servers: 3, DirectQuorum: true, TickTime: 2 * time.Second, InitLimit: 10, SyncLimit: 5})
			over := make(chan struct{})
			var all, callers sync.WaitGroup
			defer all.Wait()
			hosts := e.Hosts()
			var clients []*slowed
			begin := func() {
				for _, timeout := range []string{"30s", "10s"} {
					clients = append(clients, newSlowed(t, hosts, timeout))
				}
			}
			if way.what != "300 ms away" { // they hold their locks before the servers become slow
				begin()
			}
			if through := way.slow(t, e, over, &all); through != "" {
				hosts = through
				begin()
			}
			for _, c := range clients {
				callers.Go(func() { c.call(over) })
			}
			<-time.After(window)
			load, _ := os.ReadFile("/proc/loadavg")
			for _, c := range clients {
				t.Logf("%s: %v, load %.14s", way.what, c, load)
				if c.left.Load() > 0 {
					t.Errorf("%s: %d sessions were left as silent, want none", c.timeout, c.left.Load())
				}
				if n := c.lost(); n > 0 && c.timeout == "30s" {
					t.Errorf("%s: %d locks lost, want none", c.timeout, n)
				}
			}
			close(over)
			callers.Wait()
		})
	}
}

// slowed is a client of slow servers.
type slowed struct {
	*zklock.Client
	t       *testing.T
	timeout string
	held    []*zklock.Lock

	moves, left, expired atomic.Int32 // connections lost, those of servers that seemed silent, sessions lost
	calls, failed        atomic.Int32
	longest              atomic.Int64
}

func newSlowed(t *testing.T, hosts, timeout string) *slowed {
	c := &slowed{t: t, timeout: timeout}
	c.Client = dial(t, hosts, keys("session_timeout", timeout), zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
		switch {
		case e.State == driver.Expired:
			c.expired.Add(1)
		case e.State == driver.Suspended:
			if c.moves.Add(1); e.Silent > 0 {
				c.left.Add(1)
			}
		}
	}}))
	for i := range 10 {
		c.held = append(c.held, acquire(t, c.Mutex(fmt.Sprint(timeout, "-held-", i))))
	}
	return c
}

// call acquires and releases names until over is closed.
func (c *slowed) call(over <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		case <-time.After(200 * time.Millisecond): // it paces the calls, and proves nothing
		}
		from := time.Now()
		err := use(c.Mutex(fmt.Sprint(c.timeout, "-call-", i%8)).Acquire(within(c.t)))
		c.longest.Store(max(c.longest.Load(), int64(time.Since(from))))
		if c.calls.Add(1); err != nil {
			c.failed.Add(1)
		}
	}
}

func (c *slowed) lost() (n int) {
	for _, l := range c.held {
		if isDone(l) {
			n++
		}
	}
	return n
}

// String says what has happened.
func (c *slowed) String() string {
	return fmt.Sprintf("%s: %d connections lost, %d servers left as silent, %d sessions and %d of %d locks lost, %d calls, %d failed, the longest took %v", c.timeout,
		c.moves.Load(), c.left.Load(), c.expired.Load(), c.lost(), len(c.held), c.calls.Load(), c.failed.Load(), time.Duration(c.longest.Load()).Round(10*time.Millisecond))
}

// pausing stops one server after the other for d.
func pausing(d time.Duration) slowness {
	return func(t *testing.T, e *ensemble.Ensemble, over <-chan struct{}, all *sync.WaitGroup) string {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				case <-time.After(2 * time.Second):
				}
				s := e.Server(i % 3)
				if err := s.Freeze(); err != nil {
					t.Error(err)
				}
				<-time.After(d)
				if err := s.Thaw(); err != nil {
					t.Error(err)
				}
			}
		})
		return ""
	}
}

// slowDisks makes each write to the log of the first servers take d: see stallLog.
func slowDisks(servers int, d time.Duration) slowness {
	return func(t *testing.T, e *ensemble.Ensemble, over <-chan struct{}, all *sync.WaitGroup) string {
		for i := range servers {
			all.Go(func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(10 * time.Millisecond): // in which it may write
					}
					if err := stallLog(e.Server(i).PID(), d); err != nil {
						t.Errorf("server %d: %v", i, err)
						return
					}
				}
			})
		}
		return ""
	}
}

// distant puts d between the clients and the servers, one way.
func distant(d time.Duration) slowness {
	return func(t *testing.T, e *ensemble.Ensemble, _ <-chan struct{}, _ *sync.WaitGroup) string {
		var hosts []string
		for _, s := range e.Servers() {
			p, err := proxy.New(s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			p.Delay(proxy.Both, d)
			hosts = append(hosts, p.Addr())
		}
		return strings.Join(hosts, ",")
	}
}

// loaded keeps the machine busy with processes, so many for each processor.
func loaded(times int) slowness {
	return func(t *testing.T, _ *ensemble.Ensemble, _ <-chan struct{}, _ *sync.WaitGroup) string {
		for range times * runtime.NumCPU() {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
		}
		return ""
	}
}
