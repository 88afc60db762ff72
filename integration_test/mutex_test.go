package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
)

// TestFiftyGoroutines raises a plain counter that only the lock protects. The race detector
// finds violations that the final count does not show.
func TestFiftyGoroutines(t *testing.T) {
	t.Parallel()
	const n = 50
	e := sharedEnsemble(t)
	var clients []*zklock.Client
	for range 5 {
		clients = append(clients, dial(t, e.Hosts(), quick()))
	}
	one := clients[0].Mutex("one")
	for _, contest := range []struct {
		name  string
		mutex func(i int) *zklock.Mutex
	}{
		{"each with a separate Mutex", func(int) *zklock.Mutex { return clients[0].Mutex("own") }},
		{"all with one Mutex", func(int) *zklock.Mutex { return one }},
		{"of five clients", func(i int) *zklock.Mutex { return clients[i%len(clients)].Mutex("several") }},
	} {
		t.Run(contest.name, func(t *testing.T) {
			counter := 0
			var tokens []zklock.Token
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					err := zklock.Do(within(t), contest.mutex(i), func(ctx context.Context, _ *zklock.Lock) error {
						l, ok := zklock.FromContext(ctx)
						if !ok {
							return errors.New("the context carries no lock")
						}
						read := counter
						tokens = append(tokens, l.Token())
						err := l.Verify(ctx) // takes some time
						counter = read + 1
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if counter != n {
				t.Errorf("counted %d, want %d", counter, n)
			}
			if !slices.IsSortedFunc(tokens, zklock.Token.Compare) || len(slices.Compact(tokens)) != n {
				t.Errorf("tokens do not grow from holder to holder: %v", tokens)
			}
		})
	}
	acquired := uint64(0)
	for _, c := range clients {
		st := c.Stats()
		acquired += st.Acquired
		if st.Held != 0 || st.Acquiring != 0 || st.Lost != 0 || st.Failed != 0 {
			t.Errorf("the client's figures at the end: %+v, want nothing held, lost or failed", st)
		}
	}
	if acquired != 3*n {
		t.Errorf("%d acquisitions were counted, want %d", acquired, 3*n)
	}
}

// TestFiftyNamesDoNotWaitForEachOther: no holder releases its name before all names are held.
func TestFiftyNamesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const n = 50
	e := sharedEnsemble(t)
	c := dial(t, e.Hosts(), quick())
	var in, out sync.WaitGroup
	in.Add(n)
	all := make(chan struct{})
	go func() { in.Wait(); close(all) }()
	for i := range n {
		out.Go(func() {
			arrived := sync.OnceFunc(in.Done)
			defer arrived() // after an error the others must not wait for this one
			err := zklock.Do(within(t), c.Mutex(fmt.Sprintf("own/%d", i)), func(ctx context.Context, _ *zklock.Lock) error {
				arrived()
				select {
				case <-all:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	out.Wait()
	if st := c.Stats(); st.Acquired != n || st.Contended != 0 || st.Held != 0 {
		t.Errorf("the client's figures at the end: %+v, want %d acquired without waiting, and nothing held", st, n)
	}
}

// TestCloseWithHoldersAndWaiters: when a client is closed, its holders are notified before
// another client acquires their locks. The client leaves nothing in the queue.
func TestCloseWithHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	c, other := dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	held := acquire(t, c.Mutex("x"))
	ctx, cancel := held.Context(context.Background())
	defer cancel()
	var waiters []*attempt
	for range 5 {
		waiters = append(waiters, try(t, within(t), c.Mutex("x")))
		receive(t, "a waiter", waiting)
	}
	doneFirst := make(chan bool, 1)
	got := make(chan error, 1)
	go func() {
		l, err := other.Mutex("x").Acquire(within(t))
		doneFirst <- isDone(held)
		if err == nil {
			err = l.Release(context.Background())
		}
		got <- err
	}()
	receive(t, "the other client to wait", waiting)

	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, w := range waiters {
		if _, err := w.result(t); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("waiter: %v, want ErrClosed", err)
		}
	}
	wantLost(t, held)
	var lost *zklock.LostError
	if !errors.As(held.Err(), &lost) || lost.Cause != zklock.ErrClosed || !errors.Is(context.Cause(ctx), zklock.ErrLost) {
		t.Errorf("the holder: %v, its context: %v, want ErrLost because of ErrClosed", held.Err(), context.Cause(ctx))
	}
	if err := receive(t, "the other client", got); err != nil {
		t.Error(err)
	}
	if !<-doneFirst {
		t.Error("the other client acquired the lock before the holder's Done was closed")
	}
	if _, err := c.Mutex("x").Acquire(within(t)); !errors.Is(err, zklock.ErrClosed) {
		t.Errorf("Acquire of a closed client: %v, want ErrClosed", err)
	}
	eventually(t, "the queue is empty", func() bool { return len(contenders(t, raw, c.Mutex("x"))) == 0 })
}

// TestForeignDataIsNotWritten: a lock's name may be the znode of another program, whose
// data the client must not overwrite.
func TestForeignDataIsNotWritten(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	c, other := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick())
	m := c.Mutex("theirs")
	const data = "another program's settings"
	for _, node := range []struct{ path, data string }{{rootOf(t), "root's"}, {m.Path(), data}} {
		if _, err := raw.Create(node.path, []byte(node.data), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	var last zklock.Token
	for range 3 {
		held := acquire(t, m)
		next := try(t, within(t), other.Mutex("theirs"))
		eventually(t, "two are in the queue", func() bool { return len(contenders(t, raw, m)) == 2 })
		next.pending(t)
		release(t, held)
		l := next.must(t)
		if held.Token().Compare(last) <= 0 || l.Token().Compare(held.Token()) <= 0 {
			t.Errorf("tokens %v, %v, %v do not grow", last, held.Token(), l.Token())
		}
		last = l.Token()
		release(t, l)
	}
	for path, want := range map[string]string{rootOf(t): "root's", m.Path(): data} {
		got, stat, err := raw.Get(path)
		if err != nil || string(got) != want || stat.Version != 0 {
			t.Errorf("%s has %q, version %d, %v, want %q, unchanged", path, got, stat.Version, err, want)
		}
	}
}
