package integration_test

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// far has two clients that are a round trip away from their servers. Their sessions are open.
type far struct {
	*testing.T
	rtt  time.Duration
	open func(keep time.Duration) *zklock.Client
	a, b *zklock.Client
}

// openAll opens all sessions of a client: each is opened for the first name that belongs to it.
func (f *far) openAll(c *zklock.Client) {
	f.Helper()
	for i := 0; c.Stats().Open < c.Stats().MaxSessions; i++ {
		f.use(c.Mutex(fmt.Sprint("another", i)))
	}
}

// untilWatched returns when a client watches the node that it keeps: a sixth of the session timeout after it was used, it begins to.
func (f *far) untilWatched() { time.Sleep(5*time.Second + 4*f.rtt) }

// took returns how long f takes.
func (f *far) took(call func() error) time.Duration {
	f.Helper()
	began := time.Now()
	if err := call(); err != nil {
		f.Fatal(err)
	}
	return time.Since(began)
}

// acquire acquires and returns the lock.
func (f *far) acquire(from zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	f.Helper()
	l, err := from.Acquire(within(f), opts...)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

// use acquires and releases once, so that the client knows the name, and takes it for one in use.
func (f *far) use(from zklock.Acquirer) {
	f.Helper()
	release(f, f.acquire(from))
}

// acquiring begins to acquire, and returns, when it is waiting, a function that waits for the grant and returns when that was.
func (f *far) acquiring(from zklock.Acquirer) (granted func() time.Time) {
	return f.acquiringFor(12*f.rtt, from)
}

// acquiringFor is acquiring, and returns after d.
func (f *far) acquiringFor(d time.Duration, from zklock.Acquirer) (granted func() time.Time) {
	at := make(chan time.Time, 1)
	go func() {
		l, err := from.Acquire(within(f))
		then := time.Now()
		if err == nil {
			err = l.Release(within(f))
		}
		if err != nil {
			f.Error(err)
		}
		at <- then
	}()
	time.Sleep(d)
	return func() time.Time { return <-at }
}

// handOn measures the way from the release of a lock to the grant to another client, which waits.
func (f *far) handOn(held *zklock.Lock, granted func() time.Time) time.Duration {
	began := time.Now()
	release(f, held)
	return granted().Sub(began)
}

// roundTrips measures each row of the table "Round trips" in docs/operations.md.
var roundTrips = map[string]func(f *far) time.Duration{
	"acquire a free lock": func(f *far) time.Duration {
		f.use(f.a.Mutex("x"))
		return f.took(func() error { _, err := f.a.Mutex("x").Acquire(within(f)); return err })
	},
	"acquire several free locks with `All`": func(f *far) time.Duration {
		all := zklock.All(f.a.Mutex("x"), f.a.RWMutex("y").Writer())
		f.use(all)
		return f.took(func() error { _, err := all.Acquire(within(f)); return err })
	},
	"acquire a free lock whose name is new": func(f *far) time.Duration {
		return f.took(func() error { _, err := f.a.Mutex("x").Acquire(within(f)); return err })
	},
	"acquire a lock that a reader shares": func(f *far) time.Duration {
		f.acquire(f.b.RWMutex("x").Reader())
		f.use(f.a.RWMutex("x").Reader())
		return f.took(func() error { _, err := f.a.RWMutex("x").Reader().Acquire(within(f)); return err })
	},
	"try a free lock": func(f *far) time.Duration {
		f.use(f.a.Mutex("x"))
		return f.took(func() error { _, err := f.a.Mutex("x").TryAcquire(within(f)); return err })
	},
	"try a lock that another client holds": func(f *far) time.Duration {
		f.acquire(f.b.Mutex("x"))
		began := time.Now()
		if _, err := f.a.Mutex("x").TryAcquire(within(f)); err == nil {
			f.Fatal("the try got a lock that is held")
		}
		return time.Since(began)
	},
	"release": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.took(func() error { return l.Release(within(f)) })
	},
	"release with `WithAsyncRelease`": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"), zklock.WithAsyncRelease())
		return f.took(func() error { return l.Release(within(f)) })
	},
	"read the token; ask `Valid`, `Done` or `Healthy`": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.took(func() error {
			if l.Token() == (zklock.Token{}) || !l.Valid() || l.Err() != nil {
				f.Error("the lock is not held")
			}
			return f.a.Healthy()
		})
	},
	"pass a lock on inside a process": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.handOn(l, f.acquiringFor(time.Millisecond, f.a.Mutex("x")))
	},
	"the same later than `handover_time` after the process got it": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.handOn(l, f.acquiring(f.a.Mutex("x")))
	},
	"pass a lock on to another process": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.handOn(l, f.acquiring(f.b.Mutex("x")))
	},
	"the same to one that was third before": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		second := f.acquiring(f.open(0).Mutex("x"))
		third := f.acquiring(f.b.Mutex("x"))
		release(f, l)
		return third().Sub(second()) // it releases at once
	},
	"the same to readers behind a writer": func(f *far) time.Duration {
		l := f.acquire(f.a.RWMutex("x").Writer())
		return f.handOn(l, f.acquiring(f.b.RWMutex("x").Reader()))
	},
	"the same for a permit": func(f *far) time.Duration {
		l := f.acquire(f.a.Semaphore("x", 2))
		f.acquire(f.open(0).Semaphore("x", 2))
		return f.handOn(l, f.acquiring(f.b.Semaphore("x", 2)))
	},
	"acquire a name that the client keeps (`keep`)": func(f *far) time.Duration {
		c := f.open(time.Hour)
		f.use(c.Mutex("x"))
		f.use(c.Mutex("x"))
		f.untilWatched()
		return f.took(func() error { _, err := c.Mutex("x").Acquire(within(f)); return err })
	},
	"acquire a name that another client keeps": func(f *far) time.Duration {
		f.use(f.b.Mutex("x"))
		c := f.open(time.Hour)
		for range 4 {
			f.use(c.Mutex("x"))
		}
		f.untilWatched()
		return f.took(func() error { _, err := f.b.Mutex("x").Acquire(within(f)); return err })
	},
	"`Txn`, `Get`, `Verify`": func(f *far) time.Duration {
		l := f.acquire(f.a.Mutex("x"))
		return f.took(func() error { return l.Verify(within(f)) })
	},
	"`SetLabel`, `Downgrade`": func(f *far) time.Duration {
		l := f.acquire(f.a.RWMutex("x").Writer())
		return max(f.took(func() error { return l.SetLabel(within(f), "now") }), f.took(func() error { return l.Downgrade(within(f)) }))
	},
	"`Contenders`": func(f *far) time.Duration {
		f.acquire(f.a.Mutex("x"))
		return f.took(func() error { _, err := f.b.Contenders(within(f), "x"); return err })
	},
	"campaign for an office that is free": func(f *far) time.Duration {
		return f.took(func() error { _, err := election.New(f.a, "x").Campaign(within(f)); return err })
	},
	"from a resignation to the next term": func(f *far) time.Duration {
		term, err := election.New(f.a, "x").Campaign(within(f))
		if err != nil {
			f.Fatal(err)
		}
		led := make(chan time.Time, 1)
		go func() {
			if _, err := election.New(f.b, "x").Campaign(within(f)); err != nil {
				f.Error(err)
			}
			led <- time.Now()
		}()
		time.Sleep(12 * f.rtt)
		began := time.Now()
		if err := term.Resign(within(f)); err != nil {
			f.Fatal(err)
		}
		return (<-led).Sub(began)
	},
}

// documentedRoundTrips returns the table in docs/operations.md: the least and the most of each row.
func documentedRoundTrips(t *testing.T) map[string][2]float64 {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Round trips\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := make(map[string][2]float64)
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \| ([0-9])(?: to ([0-9]))?`).FindAllStringSubmatch(section, -1) {
		least, _ := strconv.ParseFloat(row[2], 64)
		most, _ := strconv.ParseFloat(cmp.Or(row[3], row[2]), 64)
		rows[row[1]] = [2]float64{least, most}
	}
	return rows
}

// roundTripsAre measures each row in halves of a round trip, and compares it with the table.
func roundTripsAre(t *testing.T, play func(t *testing.T, measure func(*far) time.Duration) (halves float64)) {
	want := documentedRoundTrips(t)
	for action, measure := range roundTrips {
		t.Run(action, func(t *testing.T) {
			is := play(t, measure)
			t.Logf("%.2f round trips", is)
			if documented, ok := want[action]; !ok || is < documented[0]-0.45 || is > documented[1]+0.45 {
				t.Errorf("%s took %.2f round trips; docs/operations.md says %v (%t)", action, is, documented, ok)
			}
		})
	}
	for action := range want {
		if roundTrips[action] == nil {
			t.Errorf("docs/operations.md says how many round trips this takes, and no test measures it: %s", action)
		}
	}
}

// The table of round trips is right in memory, where each takes 200 ms of the bubble's time.
func TestRoundTripsInMemory(t *testing.T) {
	const rtt = 200 * time.Millisecond
	roundTripsAre(t, func(t *testing.T, measure func(*far) time.Duration) (halves float64) {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(rtt / 2))
			f := &far{T: t, rtt: rtt}
			f.open = func(keep time.Duration) *zklock.Client {
				c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), Keep: keep})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				f.openAll(c)
				return c
			}
			f.a, f.b = f.open(0), f.open(0)
			halves = float64(measure(f)) / float64(rtt)
		})
		return halves
	})
}

// The same with a real server, as its documentation sets it up, and clients with default settings, 800 ms away.
func TestRoundTripsToAServer(t *testing.T) {
	const rtt = 800 * time.Millisecond
	if !long.On() {
		t.Skip("it takes minutes")
	}
	zk := ensemble.Start(t, ensemble.Shipped(1))
	roundTripsAre(t, func(t *testing.T, measure func(*far) time.Duration) float64 {
		f := &far{T: t, rtt: rtt}
		f.open = func(keep time.Duration) *zklock.Client {
			p, err := proxy.New(zk.Server(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() }) // after the client is closed
			p.Delay(proxy.Both, rtt/2)
			c := dial(t, p.Addr(), keys("keep", keep.String()))
			f.openAll(c)
			return c
		}
		f.a, f.b = f.open(0), f.open(0)
		return float64(measure(f)) / float64(rtt)
	})
}
