package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// Hundreds of callers of two clients, or thousands in long mode, give up at any instant: at deadlines, and when they are cancelled. At most one
// holds a name at a time, or as many as there are permits. At the end no node, watch or goroutine stays, and each
// name is free.
func TestCallersGiveUpAtAnyInstant(t *testing.T) {
	const permits = 3
	callers := long.Count(t, "ZKLOCK_CALLERS", 300, 3000)
	hosts := sharedEnsemble(t).Hosts()
	watches := func() float64 {
		stats, err := sharedEnsemble(t).Server(0).Stats()
		if err != nil {
			t.Fatal(err)
		}
		return float64(stats["watch_count"])
	}
	known := leaks.Now()
	conn := dialRaw(t, hosts, patience) // its goroutines start after it has a session, and it may connect again
	watched := watches()
	var clients []*zklock.Client
	for range 2 {
		c, err := zklock.Open("zk://" + hosts + rootOf(t) + "?session_timeout=30s")
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	names := []string{"a", "b", "s"}
	var holders [3]atomic.Int32
	var acquired, gaveUp atomic.Int32
	call := func(rng *rand.Rand) {
		c := clients[rng.IntN(len(clients))]
		var a zklock.Acquirer
		var holds []int
		var opts []zklock.AcquireOption
		switch rng.IntN(4) {
		case 0:
			a, holds = c.Semaphore("s", permits), []int{2}
		case 1:
			a, holds = zklock.All(c.Mutex("a"), c.Mutex("b")), []int{0, 1}
		case 2:
			opts = append(opts, zklock.WithoutHandover())
			fallthrough
		default:
			i := rng.IntN(2)
			a, holds = c.Mutex(names[i]), []int{i}
		}
		wait := time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if rng.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		} else {
			defer time.AfterFunc(wait, cancel).Stop()
		}
		l, err := a.Acquire(ctx, opts...)
		if err != nil {
			if gaveUp.Add(1); !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
				t.Error(err)
			}
			return
		}
		acquired.Add(1)
		for _, i := range holds {
			if n := holders[i].Add(1); n > 1 && i < 2 || n > permits {
				t.Errorf("%s: %d holders", names[i], n)
			}
		}
		for _, i := range holds {
			holders[i].Add(-1)
		}
		if err := l.Release(context.Background()); err != nil {
			t.Errorf("%s: release: %v", a.Name(), err)
		}
	}
	end := time.Now().Add(long.Time(t, "ZKLOCK_FOR", 4*time.Second, time.Minute))
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for rng := rand.New(rand.NewPCG(1, uint64(i))); time.Now().Before(end); {
				call(rng)
			}
		})
	}
	all.Wait()
	t.Logf("%d acquired, %d gave up", acquired.Load(), gaveUp.Load())
	if acquired.Load() == 0 || gaveUp.Load() == 0 {
		t.Error("too little has happened to prove anything")
	}
	for _, name := range names {
		eventually(t, "no node of "+name+" stays", func() bool {
			children, _, err := conn.Children(clients[0].Mutex(name).Path())
			return len(children) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode))
		})
	}
	for _, c := range clients {
		if s := c.Stats(); s.Held != 0 || s.Acquiring != 0 || s.Waiting != 0 {
			t.Errorf("%+v, want no lock and no acquisition", s)
		}
		for _, a := range []zklock.Acquirer{c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", permits)} {
			release(t, acquire(t, a))
		}
	}
	eventually(t, "no watch stays", func() bool { return watches() <= watched })
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	conn.Close()
	if err := leaks.Find(known); err != nil {
		t.Error(err)
	}
}
