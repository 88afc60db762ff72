package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// node returns the first contender of a name, and how Revoke and Break name its node.
func node(t *testing.T, c *zklock.Client, name string) (first zklock.Contender, node string) {
	t.Helper()
	found, err := c.Contenders(within(t), name)
	if err != nil || len(found) == 0 {
		t.Fatalf("contenders of %s: %+v, %v", name, found, err)
	}
	return found[0], fmt.Sprintf("%s@%#x", found[0].Node, found[0].Zxid)
}

// A batch job that is asked for its lock ends in its own time, and holds the lock until then.
func TestRevokedBatchJob(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	worker, operator := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	working, asked, cleanUp, ended := make(chan *zklock.Lock, 1), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx := within(t)
	go func() {
		ended <- zklock.Do(ctx, worker.Mutex("batch"), func(ctx context.Context, l *zklock.Lock) error {
			working <- l
			<-ctx.Done()
			close(asked)
			<-cleanUp
			return context.Cause(ctx)
		}, zklock.WithRevocable())
	}()
	l := receive(t, "the batch job", working)
	next := try(t, within(t), operator.Mutex("batch"))
	receive(t, "the wait", waiting)
	_, at := node(t, operator, "batch")
	if err := operator.Revoke(within(t), "batch", at, "maintenance at 14:00"); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end of the job's context", asked)
	if err := l.Verify(within(t)); err != nil || !l.Valid() {
		t.Errorf("the lock during the clean-up: %v, valid %v", err, l.Valid())
	}
	if first, _ := node(t, operator, "batch"); first.Revoked != "maintenance at 14:00" || !first.Held {
		t.Errorf("the holder is shown as %+v", first)
	}
	next.pending(t)
	close(cleanUp)
	if err := receive(t, "the end of the job", ended); !errors.Is(err, zklock.ErrRevoked) || errors.Is(err, zklock.ErrLost) {
		t.Errorf("the job has ended with %v", err)
	}
	after := next.must(t)
	if after.Token().Compare(l.Token()) <= 0 {
		t.Errorf("token %v after %v", after.Token(), l.Token())
	}
	release(t, after)
}

// A holder that ignores the request keeps its lock, whether it wanted to be asked or not.
func TestIgnoredRevocationOnServers(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	for name, opts := range map[string][]zklock.AcquireOption{"not revocable": nil, "revocable": {zklock.WithRevocable()}} {
		t.Run(name, func(t *testing.T) {
			hooks, waiting := waits()
			holder, operator := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
			l, err := holder.Mutex("x").Acquire(within(t), opts...)
			if err != nil {
				t.Fatal(err)
			}
			next := try(t, within(t), operator.Mutex("x"))
			receive(t, "the wait", waiting)
			_, at := node(t, operator, "x")
			for range 2 {
				if err := operator.Revoke(within(t), "x", at, "r"); err != nil {
					t.Fatal(err)
				}
			}
			if opts != nil {
				receive(t, "Revoked", l.Revoked())
			}
			if err := l.Verify(within(t)); err != nil || isDone(l) {
				t.Errorf("the lock after the request: %v", err)
			}
			next.pending(t)
			release(t, l)
			release(t, next.must(t))
		})
	}
}

// A request for a node that is gone, or for another one with its name, changes nothing.
func TestRevocationOfANodeThatIsGone(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), patience)
	holder, operator := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick())
	release(t, acquire(t, holder.Mutex("x"))) // so that the holder is not the first with its number
	first := acquire(t, holder.Mutex("x"))
	_, gone := node(t, operator, "x")
	release(t, first)
	l, err := holder.Mutex("x").Acquire(within(t), zklock.WithRevocable())
	if err != nil {
		t.Fatal(err)
	}
	h, at := node(t, operator, "x")
	path := holder.Mutex("x").Path()
	data, before, err := raw.Get(path + "/" + h.Node)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{gone, gone[:len(h.Node)], fmt.Sprintf("%s@%#x", h.Node, h.Zxid+1), fmt.Sprintf("%s@%#x", h.Node, h.Zxid-1)} {
		if err := operator.Revoke(within(t), "x", other, "r"); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("Revoke of %s: %v, want ErrNoNode", other, err)
		}
		if err := operator.Break(within(t), "x", other); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("Break of %s: %v, want ErrNoNode", other, err)
		}
	}
	now, after, err := raw.Get(path + "/" + h.Node)
	if err != nil || string(now) != string(data) || after.Mzxid != before.Mzxid || after.Version != before.Version {
		t.Errorf("the holder's node has changed from %s to %s, %+v, %v", data, now, after, err)
	}
	if names := contenders(t, raw, holder.Mutex("x")); len(names) != 1 {
		t.Errorf("contenders %q", names)
	}
	// A request for this very node reaches the holder. It is the first one that the holder sees:
	// those above did not reach it.
	if err := operator.Revoke(within(t), "x", at, "the first"); err != nil {
		t.Fatal(err)
	}
	receive(t, "Revoked", l.Revoked())
	ctx, cancel := l.Context(context.Background())
	defer cancel()
	if err := context.Cause(ctx); err == nil || err.Error() != zklock.ErrRevoked.Error()+`: "the first"` {
		t.Errorf("the cause is %v", err)
	}
	release(t, l)
}

// Holders that do not use WithRevocable pay nothing for it. Those that do pay one read.
func TestRevocableCostsOneRead(t *testing.T) {
	t.Parallel()
	c := calmDial(t, calm(t))
	release(t, acquire(t, c.Mutex("x")))
	cycle := cost{map[string]int{"multi": 1, "delete": 1}, enqueuing, 0}
	if got := c.costOf(func() { release(t, acquire(t, c.Mutex("x"))) }); !got.equal(cycle) {
		t.Errorf("without WithRevocable: %v, want %v", got, cycle)
	}
	release(t, acquire(t, c.Mutex("y")))
	reads := func() int { return c.proxy.Counts().Requests["getData"] }
	before := c.proxy.Counts()
	was := reads()
	l, err := c.Mutex("y").Acquire(within(t), zklock.WithRevocable())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder's node is watched", func() bool { return reads() > was })
	release(t, l)
	want := cycle.and(cost{map[string]int{"getData": 1}, nil, 1}) // the watch reports the deletion
	eventually(t, "the requests are those of WithRevocable: "+want.String(), func() bool { return c.since(before).equal(want) })
}

// Curator's Revoker asks holders of zklock, and zklock asks holders of Curator that are
// revocable, in each dialect that the two share.
func TestRevocationTogetherWithCurator(t *testing.T) {
	t.Parallel()
	hosts, root := sharedEnsemble(t).Hosts(), rootOf(t)
	p := curatorPeers(t, 1, hosts)[0]
	p.expect(t, "ready")
	for _, f := range []struct{ dialect, kind string }{{"curator", "mutex"}, {"zk", "mutex"}, {"zklock", "write"}, {"zklock", "read"}} {
		t.Run(f.dialect+" "+f.kind, func(t *testing.T) {
			c, err := zklock.Open("zk://" + hosts + root + "?tick_time=500ms&dialect=" + f.dialect)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			name := f.dialect + "-" + f.kind
			var a zklock.Acquirer = c.Mutex(name)
			if f.kind == "read" {
				a = c.RWMutex(name).Reader()
			}
			l, err := a.Acquire(within(t), zklock.WithRevocable())
			if err != nil {
				t.Fatal(err)
			}
			h, _ := node(t, c, name)
			p.send("revoke %s/%s", c.Mutex(name).Path(), h.Node)
			p.expect(t, "asked")
			receive(t, "Revoked", l.Revoked())
			if h, _ := node(t, c, name); h.Revoked != "__REVOKE__" || isDone(l) {
				t.Errorf("the contender is %+v; the lock: %v", h, l.Err())
			}
			release(t, l)

			p.send("revocable %s %s", f.kind, c.Mutex(name).Path())
			p.expect(t, "held")
			p.send("revoked")
			p.silent(t)
			theirs, at := node(t, c, name)
			if err := c.Revoke(within(t), name, at, "r"); err != nil {
				t.Fatal(err)
			}
			p.expect(t, "revoked")
			if still, _ := node(t, c, name); still.Node != theirs.Node || !still.Held {
				t.Errorf("the contender is %+v, want Curator's: a request never ends exclusion", still)
			}
			p.send("release")
			p.expect(t, "released")
			release(t, acquire(t, c.Mutex(name)))
		})
	}
}

// Leaders of Curator cannot be asked. A request to a LeaderLatch is refused. A LeaderSelector has
// the nodes of Curator's mutex, so it gets the request, and goes on leading.
func TestRevocationOfCuratorsLeaders(t *testing.T) {
	t.Parallel()
	long.Test(t, "processes of another library")
	hosts, root := sharedEnsemble(t).Hosts(), rootOf(t)
	p := curatorPeers(t, 1, hosts)[0]
	p.expect(t, "ready")
	for _, f := range []struct {
		dialect, kind string
		refused       error
	}{{"latch", "latch", zklock.ErrConflict}, {"curator", "selector", nil}} {
		t.Run(f.kind, func(t *testing.T) {
			c, err := zklock.Open("zk://" + hosts + root + "?tick_time=500ms&dialect=" + f.dialect)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p.send("acquire %s %s", f.kind, c.Mutex(f.kind).Path())
			p.expect(t, "held")
			before, at := node(t, c, f.kind)
			if err := c.Revoke(within(t), f.kind, at, "r"); !errors.Is(err, f.refused) {
				t.Errorf("Revoke: %v, want %v", err, f.refused)
			}
			if after, _ := node(t, c, f.kind); after.Node != before.Node || after.Zxid != before.Zxid || !after.Held {
				t.Errorf("the leader is %+v, and was %+v", after, before)
			}
			p.silent(t)
			p.send("release")
			p.expect(t, "released")
			release(t, acquire(t, c.Mutex(f.kind)))
		})
	}
}
