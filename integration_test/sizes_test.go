package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// wide is most of one of the names that take most room in a path: each of its bytes is written as three.
var wide = strings.Repeat("ä", 250)

// restart stops and starts one server after the other.
func restart(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	for _, s := range e.Servers() {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitServing(); err != nil {
			t.Fatalf("%v\n%s", err, s.Log())
		}
	}
}

// fill acquires as many locks as the task has rounds, all at once. Then it waits for its parent, and closes its client.
func (w *worker) fill(ctx context.Context, c *zklock.Client, stdin *bufio.Reader) error {
	var refused atomic.Int64
	var callers sync.WaitGroup
	for i := range w.task.Rounds {
		callers.Go(func() {
			_, err := c.Mutex(w.task.Name + fmt.Sprintf("%012d", i)).Acquire(ctx)
			switch {
			case errors.Is(err, zklock.ErrTooManyWaiters) && strings.Contains(err.Error(), "pool_max_sessions"):
				refused.Add(1)
			case err != nil:
				w.print(report{What: "error", Err: strings.ReplaceAll(err.Error(), w.task.Name, "")})
			}
		})
	}
	callers.Wait()
	w.print(report{What: "full", From: refused.Load()})
	_, _ = stdin.ReadString('\n')
	return c.Close()
}

// ZooKeeper's servers write all paths of a session's ephemeral nodes into the transaction that ends it, and
// stop for good if they cannot read that (ZOOKEEPER-4306). A process that holds as much as it can, and is
// killed, must not do that to them; nor one that closes its client.
func TestServersSurviveAFullClient(t *testing.T) {
	long.Test(t, "thousands of long names on three servers, which restart")
	ensemble.Require(t)
	for _, c := range []struct {
		what, stem string
		names      int
		sessions   int
		killed     bool
		java       []string
	}{
		{"killed with names of two-byte letters", wide, 1_600, 1, true, nil}, // paths of 2.5 MB
		{"killed with names of 500 bytes in two sessions", strings.Repeat("x", 488), 12_000, 2, true, nil},
		{"closed", wide, 1_600, 1, false, nil},
		{"killed, and the servers have a lower limit than its URL says", wide, 600, 2, true, []string{"-Djute.maxbuffer=65536"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := ensemble.Start(t, ensemble.Config{Servers: 3, JavaOptions: c.java})
			full := startWorker(t, task{Role: "fill", Name: c.stem, Rounds: c.names, URL: ensemble.URL(e.Hosts(), rootOf(t), quick("pool_max_sessions", fmt.Sprint(c.sessions)))})
			other := dial(t, e.Hosts(), quick())
			full.await("ready")
			full.start()
			refused := full.await("full").From
			t.Logf("%d of %d acquisitions were refused", refused, c.names)
			if refused == 0 || refused == int64(c.names) {
				t.Errorf("%d of %d acquisitions were refused, want some", refused, c.names)
			}
			if c.killed {
				if err := full.cmd.Process.Signal(os.Kill); err != nil {
					t.Fatal(err)
				}
			} else {
				full.start()
				full.await("done")
			}
			for i := range 20 {
				release(t, acquire(t, other.Mutex(c.stem+fmt.Sprintf("%012d", i*c.names/20))))
			}
			wait.Until(t, "all znodes of the sessions have gone", func() bool {
				text, err := e.Server(0).FourLetter("mntr")
				return err == nil && strings.Contains(text, "zk_ephemerals_count\t0\n")
			})
			restart(t, e)
			release(t, acquire(t, other.Mutex("after")))
			for _, s := range e.Servers() {
				if s.Logged("Unreasonable length") {
					t.Errorf("%v could not read a transaction:\n%s", s, s.Log())
				}
			}
		})
	}
}

// The runbook says how servers are rescued that a session with too many bytes of paths has stopped.
func TestRescueOfStoppedServers(t *testing.T) {
	long.Test(t, "three servers that stop, and several restarts")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3})
	since(t, e, "3.6", "the transaction that ends a session has paths")
	c := dial(t, e.Hosts(), quick())
	release(t, acquire(t, c.Mutex("before")))
	conn := dialRaw(t, e.Hosts(), 5*time.Second)
	if _, err := conn.Create("/wide", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for i := range 160 {
		var ops []any
		for j := range 10 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("/wide/%s%d-%d", strings.Repeat("x", 1500), i, j), Data: []byte{}, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral})
		}
		if _, err := conn.Multi(ops...); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	logs := func(text string) (n int) {
		for _, s := range e.Servers() {
			if s.Logged(text) {
				n++
			}
		}
		return n
	}
	wait.Until(t, "the followers cannot read the end of the session", func() bool { return logs("Unreasonable length") > 0 })
	for _, s := range e.Servers() {
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "a majority cannot read its log", func() bool { return logs("Unable to load database on disk") >= 2 })
	for _, s := range e.Servers() {
		s.Kill()
		s.SetJavaOptions("-Djute.maxbuffer=16777216")
	}
	for _, s := range e.Servers() {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.AwaitServing(); err != nil {
		t.Fatalf("%v\n%s", err, e.Server(0).Log())
	}
	release(t, acquire(t, c.Mutex("during")))
	restart(t, e) // the option stays
	release(t, acquire(t, c.Mutex("during")))
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(e.Followers(), leader) {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		for _, other := range e.Servers() { // they have all that was committed, before s forgets it
			if other != s {
				if err := other.AwaitServing(); err != nil {
					t.Fatalf("%v\n%s", err, other.Log())
				}
			}
		}
		if err := s.Wipe(); err != nil {
			t.Fatal(err)
		}
		s.SetJavaOptions()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitServing(); err != nil {
			t.Fatalf("%v\n%s", err, s.Log())
		}
		release(t, acquire(t, c.Mutex("after")))
	}
	restart(t, e)
	release(t, acquire(t, c.Mutex("after")))
}

// The small creates of a session with many nodes do not show that the servers have a lower jute.maxbuffer than the URL
// says. The session asks, and has no more than they can delete at its end: they work on, and start again. An operator may have lowered the limit
// after the session had as many nodes that the servers could delete them.
func TestFullSessionOnServersWithALowLimit(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for what, lowered := range map[string]bool{"from the beginning": false, "while the client runs": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if lowered {
				long.Test(t, "servers restart twice; TestSessionAsksAgainOnANewConnection has the same without servers")
			}
			const low = "-Djute.maxbuffer=65536"
			config, most := ensemble.Config{JavaOptions: []string{low}}, uint64(3)
			if lowered {
				config, most = ensemble.Config{}, 4 // that of the restart may count
			}
			e := ensemble.Start(t, config)
			p, err := proxy.New(e.Server(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			c := dial(t, p.Addr(), quick("pool_max_sessions", "1"))
			var before []*zklock.Lock
			for i := 0; lowered && i < 80; i++ { // more than fit into 112 KiB
				before = append(before, acquire(t, c.Mutex(wide+fmt.Sprintf("%012d", i))))
			}
			for _, l := range before {
				release(t, l)
			}
			if lowered {
				e.Server(0).SetJavaOptions(low)
				restart(t, e)
			}
			const names = 300 // with paths of 480 KB
			held, was := 0, c.Stats()
			for ; held < names; held++ {
				if _, err = c.Mutex(wide + fmt.Sprintf("%012d", held)).Acquire(within(t)); err != nil {
					break
				}
			}
			st := c.Stats()
			t.Logf("%d names are held, and %d connections were lost", held, st.Reconnects-was.Reconnects)
			if !errors.Is(err, zklock.ErrTooManyWaiters) || !strings.Contains(err.Error(), "raise their jute.maxbuffer") || st.Reconnects-was.Reconnects > most || st.SessionsLost > 0 {
				t.Errorf("after %d names, and %d connections: %.600v; want ErrTooManyWaiters, its reason and %d", held, st.Reconnects-was.Reconnects, err, most)
			}
			p.Refuse()
			p.Cut()
			p.KillConns()
			other := dial(t, e.Hosts(), quick())
			wait.Until(t, "the session has ended", func() bool {
				text, err := e.Server(0).FourLetter("mntr")
				return err == nil && strings.Contains(text, "zk_ephemerals_count\t0")
			})
			restart(t, e)
			release(t, acquire(t, other.Mutex("after")))
		})
	}
}

// Servers with a lower jute.maxbuffer than the client knows cut the connection of each larger group. The client
// learns that, and its sessions stay alive under load. One session has no room for all of these names on the first servers. The
// second ones read a request of 1 KiB at most: less has no room for locks of ordinary names side by side.
func TestLoadOnServersWithALowLimit(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for _, c := range []struct{ limit, letters, callers, lost, many int }{
		{64 << 10, 490, 300, 8, 90}, // a session has room for 90 of them, and their creates are too large
		{1 << 10, 10, 150, 30, 40},
	} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			t.Parallel()
			e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{fmt.Sprint("-Djute.maxbuffer=", c.limit)}})
			client := dial(t, e.Hosts(), quick("pool_max_sessions", "4", "handover_limit", "0"))
			held := acquire(t, client.Mutex("held"))
			var done sync.WaitGroup
			for i := range c.callers {
				done.Go(func() {
					for range 20 {
						l, err := client.Mutex(strings.Repeat("x", c.letters) + fmt.Sprint(i)).Acquire(within(t))
						if err == nil {
							err = l.Release(within(t))
						}
						if err != nil {
							t.Errorf("caller %d: %s", i, strings.ReplaceAll(err.Error(), "x", ""))
							return
						}
					}
				})
			}
			done.Wait()
			st := client.Stats()
			t.Logf("%d lost connections", st.Reconnects)
			if st.SessionsLost > 0 || int(st.Reconnects) > c.lost || !held.Valid() {
				t.Errorf("%d sessions and %d connections were lost, want none and no more than %d", st.SessionsLost, st.Reconnects, c.lost)
			}
			many := make([]zklock.Acquirer, c.many)
			for i := range many {
				many[i] = client.Mutex(strings.Repeat("y", c.letters) + fmt.Sprint(i))
			}
			_, err := zklock.All(many...).Acquire(within(t))
			if lost := client.Stats().Reconnects - st.Reconnects; !errors.Is(err, zklock.ErrUnavailable) || !strings.Contains(err.Error(), "jute.maxbuffer") || lost > 3 {
				t.Errorf("a request that is too large by itself: %.300v, after %d lost connections; want ErrUnavailable, jute.maxbuffer and 3", err, lost)
			}
			release(t, held)
		})
	}
}

// A client with many watches sets them again when its connection comes back, in requests that servers with a low
// jute.maxbuffer read. Otherwise they would cut each new connection, until the session has expired.
func TestWatchesOnServersWithALowLimit(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	const names = 90 // a session has room for these, and two watches for each have 108 KB
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Djute.maxbuffer=65536"}})
	p, err := proxy.New(e.Server(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	holder := dial(t, e.Hosts(), quick("pool_max_sessions", "1"))
	waiting := dial(t, p.Addr(), quick("pool_max_sessions", "1"))
	var held []*zklock.Lock
	got := make(chan error, names)
	for i := range names {
		name := fmt.Sprint(i, strings.Repeat("x", 490))
		held = append(held, acquire(t, holder.Mutex(name)))
		go func() {
			l, err := waiting.Mutex(name).Acquire(within(t))
			if err == nil {
				err = l.Release(within(t))
			}
			got <- err
		}()
	}
	wait.Until(t, "each waiter watches its own node and that of the holder", func() bool {
		stats, err := e.Server(0).Stats()
		return err == nil && stats["watch_count"] >= 3*names // the holder watches its own
	})
	p.KillConns()
	for _, l := range held {
		release(t, l)
	}
	for range names {
		if err := <-got; err != nil {
			t.Errorf("a waiter: %s", strings.ReplaceAll(err.Error(), "x", ""))
		}
	}
	if st := waiting.Stats(); st.Reconnects > 4 || st.SessionsLost > 0 { // a busy machine may cost one more
		t.Errorf("%d connections and %d sessions were lost, want one connection and no session", st.Reconnects, st.SessionsLost)
	}
}

// Names, access lists, sets, labels and data of random sizes on servers whose limits leave no room: no caller gets
// another one's error, and the servers survive the end of a session that is full. From a client that knows these limits
// the server cuts no request. In half of the rounds of the long mode it does not know them.
func TestRandomSizes(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for round := range long.Count(t, "ZKLOCK_ROUNDS", 1, 20) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		upTo := func(most int) int { return int(float64(most) * math.Pow(r.Float64(), 2)) }
		limit, knows := 12<<10+upTo(200<<10), round%2 == 0
		if !knows {
			limit += 28 << 10
		}
		e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{fmt.Sprintf("-Djute.maxbuffer=%d", limit), "-Dzookeeper.jute.maxbuffer.extrasize=1024"}})
		p, err := proxy.New(e.Server(0).Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		open := driver.OpenACL(driver.PermAll)[0]
		access := []string{open.Scheme + ":" + open.ID + ":cdrwa"}
		for i := range upTo(60) {
			access = append(access, fmt.Sprintf("ip:10.0.%d.%d:r", i, upTo(250)))
		}
		t.Logf("round %d: seed %d, limit %d, known: %v, %d entries", round, seed, limit, knows, len(access))
		url := quick("acl", strings.Join(access, ","), "pool_max_sessions", fmt.Sprint(1+r.IntN(3)), "deadlock_timeout", "0")
		if knows {
			url.Set("jute_maxbuffer", fmt.Sprint(limit))
		}
		c := dial(t, p.Addr(), url)
		name := func(i int) string { return fmt.Sprint(i) + strings.Repeat([]string{"n", "ä"}[r.IntN(2)], upTo(250)) }
		var done sync.WaitGroup
		var full atomic.Int64
		for i := range 600 {
			var a zklock.Acquirer = c.Mutex(name(i))
			var all []zklock.Acquirer
			if r.IntN(20) == 0 {
				for j := range 1 + upTo(30) {
					all = append(all, c.Mutex(name(1000*i+j+1000)))
				}
				a = zklock.All(all...)
			}
			label, data, keeps := strings.Repeat("l", upTo(300)), make([]byte, upTo(2*limit)), r.IntN(2) == 0
			done.Go(func() {
				slow := func(err error) bool { // on a busy machine, and no request was cut
					return (errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, driver.ErrConnLoss) || errors.Is(err, zklock.ErrLost) || errors.Is(err, context.DeadlineExceeded)) &&
						!errors.Is(err, driver.ErrTooLarge)
				}
				allowed := func(what string, err error) {
					if err != nil && !errors.Is(err, zklock.ErrTooManyWaiters) && !errors.Is(err, driver.ErrTooLarge) && !slow(err) {
						t.Errorf("seed %d: %s: %.300v", seed, what, err)
					}
				}
				l, err := a.Acquire(within(t), zklock.WithLabel(label))
				if allowed("acquire", err); err != nil {
					full.Add(1)
					return
				}
				_, err = l.Txn(within(t), driver.CreateOp(fmt.Sprintf("%s/~data-%d", rootOf(t), i), data, driver.Persistent, c.ACL()))
				if fits := knows && len(data)+len(all)*2<<10 < limit-8<<10; !slow(err) && (fits && err != nil || !errors.Is(err, driver.ErrTooLarge) && err != nil) {
					t.Errorf("seed %d: txn with %d bytes: %.300v", seed, len(data), err)
				}
				if !keeps {
					allowed("release", l.Release(within(t)))
				}
			})
		}
		done.Wait()
		st := c.Stats()
		t.Logf("%d of 600 were refused, %d are held", full.Load(), st.Held)
		for _, text := range []string{"Len error", "Unreasonable length"} {
			if knows && e.Server(0).Logged(text) {
				t.Errorf("seed %d: the server has cut a request, %q, and %d connections and %d sessions were lost:\n%s", seed, text, st.Reconnects, st.SessionsLost, e.Server(0).Log())
			}
		}
		p.Refuse()
		p.Cut()
		p.KillConns()
		other := dial(t, e.Hosts(), quick())
		wait.Until(t, "the sessions of the client have ended", func() bool {
			text, err := e.Server(0).FourLetter("mntr")
			return err == nil && strings.Contains(text, "zk_ephemerals_count\t0")
		})
		restart(t, e)
		release(t, acquire(t, other.Mutex("after")))
	}
}
