package integration_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestWarmNameOnThreeServers: another program, on another server, deletes and creates a
// lock's znode again and again, with a contender below it, so that the client's next
// contender gets the suffix that would prove that it is alone. The client must not be
// granted the lock while that contender is there.
func TestWarmNameOnThreeServers(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3})
	followers := e.Followers()
	c := dial(t, followers[0].Addr(), quick())
	raw := dialRaw(t, followers[1].Addr(), 20*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	path := c.Mutex("a").Path()
	warmed, waited := 0, 0
	const rounds = 150
	for round := range rounds {
		for range 4 {
			release(t, acquire(t, c.Mutex("a")))
		}
		if _, err := raw.Sync(path); err != nil {
			t.Fatal(err)
		}
		_, stat, err := raw.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		next := (stat.Cversion + stat.NumChildren) / 2 // ZooKeeper shows twice the creations, less the children
		remade := make(chan error, 1)
		contender := make(chan string, 1)
		go func() {
			// One transaction, so that the client's create is before all of it or after it.
			ops := []any{&zk.DeleteRequest{Path: path, Version: -1}, &zk.CreateRequest{Path: path, Data: []byte("zklock"), Acl: acl}}
			for range next - 1 {
				ops = append(ops, &zk.CreateRequest{Path: path + "/x", Acl: acl}, &zk.DeleteRequest{Path: path + "/x", Version: -1})
			}
			ops = append(ops, &zk.CreateRequest{Path: path + "/_c_00000000000000000000000000000001-__WRIT__", Acl: acl, Flags: zk.FlagEphemeralSequential})
			results, err := raw.Multi(ops...)
			if err == nil {
				contender <- results[len(results)-1].String
			}
			remade <- err
		}()
		if rand.IntN(2) == 0 { // else the two race
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		attempt := try(t, within(t), c.Mutex("a"))
		err = <-remade
		switch {
		case errors.Is(err, zk.ErrNotEmpty): // the client was first
			warmed++
			release(t, attempt.must(t))
			continue
		case err != nil:
			t.Fatal(err)
		}
		waited++
		attempt.pending(t)
		if err := raw.Delete(<-contender, -1); err != nil {
			t.Fatal(err)
		}
		release(t, attempt.must(t))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d rounds: %d times the client was first, %d times it waited", rounds, warmed, waited)
	if warmed == 0 || waited == 0 {
		t.Errorf("the two never raced: the client was first %d times, and waited %d times", warmed, waited)
	}
}

// TestWarmNameMeetsOthersOnThreeServers: whatever happens on another server between two
// acquires of a warm name, the client waits for a contender that is ahead, and only then.
func TestWarmNameMeetsOthersOnThreeServers(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, MaxSessionTimeout: time.Hour})
	followers := e.Followers()
	hooks, waits := waits()
	c := calmDialAt(t, followers[0], zklock.WithHooks(hooks))
	raw := dialRaw(t, followers[1].Addr(), 20*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	path := c.Mutex("a").Path()
	enter := func() string {
		t.Helper()
		contender, err := raw.Create(path+"/_c_00000000000000000000000000000001-__WRIT__", nil, zk.FlagEphemeralSequential, acl)
		if err != nil {
			t.Fatal(err)
		}
		return contender
	}
	leave := func(contender string) {
		t.Helper()
		if err := raw.Delete(contender, -1); err != nil {
			t.Fatal(err)
		}
	}
	// remake deletes the name's znode and creates it again, with a foreign contender below it, so
	// that the next contender gets the suffix that it would have had.
	remake := func() string {
		t.Helper()
		if _, err := raw.Sync(path); err != nil {
			t.Fatal(err)
		}
		_, before, err := raw.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		leave(path)
		if _, err := raw.CreateContainer(path, []byte("zklock"), zk.FlagContainer, acl); err != nil {
			t.Fatal(err)
		}
		next := func(stat *zk.Stat) int32 { return (stat.Cversion + stat.NumChildren) / 2 }
		for range next(before) - 1 {
			child, err := raw.Create(path+"/x", nil, 0, acl)
			if err != nil {
				t.Fatal(err)
			}
			leave(child)
		}
		contender := enter()
		if _, after, err := raw.Get(path); err != nil || next(after) != next(before) {
			t.Fatalf("the next suffix is %d, want %d; %v", next(after), next(before), err)
		}
		return contender
	}
	cycle := func(a zklock.Acquirer) { release(t, acquire(t, a)) }
	for _, test := range []struct {
		name string
		do   func() (contender string) // "" if none stays
	}{
		{"a foreign contender came", enter},
		{"foreign contenders came, and one has left", func() string {
			gone := enter()
			stays := enter()
			leave(gone)
			return stays
		}},
		{"a foreign contender came and left", func() string {
			leave(enter())
			return ""
		}},
		{"a plain child was created and deleted", func() string {
			child, err := raw.Create(path+"/x", nil, 0, acl)
			if err != nil {
				t.Fatal(err)
			}
			leave(child)
			return ""
		}},
		{"the parent's data was set", func() string {
			if _, err := raw.Set(path, []byte("zklock"), -1); err != nil {
				t.Fatal(err)
			}
			return ""
		}},
		{"the name was acquired together with another one", func() string {
			cycle(zklock.All(c.Mutex("a"), c.Mutex("b")))
			return ""
		}},
		{"a transaction with a foreign contender was rolled back", func() string {
			_, err := raw.Multi(
				&zk.CreateRequest{Path: path + "/_c_00000000000000000000000000000001-__WRIT__", Acl: acl, Flags: zk.FlagEphemeralSequential},
				&zk.DeleteRequest{Path: path + "/missing", Version: -1})
			if !errors.Is(err, zk.ErrNoNode) {
				t.Fatalf("the transaction: %v, want ErrNoNode", err)
			}
			return ""
		}},
		{"the same, and then a foreign contender came", func() string {
			_, _ = raw.Multi(
				&zk.CreateRequest{Path: path + "/_c_00000000000000000000000000000001-__WRIT__", Acl: acl, Flags: zk.FlagEphemeralSequential},
				&zk.DeleteRequest{Path: path + "/missing", Version: -1})
			return enter()
		}},
		{"the znodes of other names that are acquired at the same time have gone", func() string {
			names := []string{"c", "d", "e", "f", "g", "h"}
			for _, name := range names {
				cycle(c.Mutex(name))
				leave(c.Mutex(name).Path())
			}
			var all sync.WaitGroup
			for _, name := range append(names, "a") {
				all.Go(func() {
					l, err := c.Mutex(name).Acquire(within(t))
					if err == nil {
						err = l.Release(within(t))
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
			return ""
		}},
		{"the znode was made again, with the same suffix next", remake},
		{"the same, and the client gets its events late", func() string {
			c.proxy.Delay(proxy.Down, 300*time.Millisecond)
			return remake()
		}},
		{"the same while the client had no connection", func() string {
			c.proxy.Cut()
			contender := remake()
			time.AfterFunc(50*time.Millisecond, c.proxy.Heal)
			return contender
		}},
		{"a foreign contender came, and the client gets its events late", func() string {
			c.proxy.Delay(proxy.Down, 300*time.Millisecond)
			return enter()
		}},
		{"a foreign contender came while the client had no connection", func() string {
			c.proxy.Cut()
			contender := enter()
			time.AfterFunc(50*time.Millisecond, c.proxy.Heal)
			return contender
		}},
	} {
		ok := t.Run(test.name, func(t *testing.T) {
			for uses := 0; ; uses++ {
				var l *zklock.Lock
				got := c.costOf(func() { l = acquire(t, c.Mutex("a")) })
				release(t, l)
				if got.equal(oneCreate) {
					break
				}
				if uses == 20 {
					t.Fatalf("the name is not warm after %d uses: an acquire costs %v", uses, got)
				}
			}
			contender := test.do()
			for len(waits) > 0 {
				<-waits
			}
			attempt := try(t, within(t), c.Mutex("a"))
			if contender != "" {
				select {
				case <-waits:
				case <-attempt.done:
				}
				attempt.pending(t)
				leave(contender)
			}
			l := attempt.must(t)
			c.proxy.Heal()
			release(t, l)
			if n := contendersOf(t, c.Client, "a"); n != 0 {
				t.Errorf("%d contenders are left", n)
			}
		})
		if !ok {
			return // a lock that was granted too early is still held
		}
	}
}
