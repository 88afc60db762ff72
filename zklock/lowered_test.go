package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Many places were writers', as their nodes' names say, and are readers' now: in each client a
// writer has queued, a reader has queued behind it, and the writer has left. Readers wait for none of
// these places, and learn that from each node once, however many there are. The clock is the real
// one: a reader that lists the queue without end would stop a bubble's.
func TestReadersBehindManyLoweredPlaces(t *testing.T) {
	const places = 12 // more than a line that is walked has
	e := memdriver.New()
	theirs := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
	eyes := connect(t, e.Connector(), nil)
	readers := make(chan *zklock.Lock, places+1)
	read := func(c *zklock.Client) {
		l, err := c.RWMutex("x").Reader().Acquire(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		readers <- l
	}
	for i := range places {
		c := connect(t, e.Connector(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = c.Mutex("x").Acquire(ctx)
		}()
		wait.Until(t, "the writer waits", func() bool { return nodes(e) == i+2 && c.Stats().Waiting == 1 })
		go read(c)
		wait.Until(t, "the reader waits", func() bool { return c.Stats().Waiting == 2 })
		cancel()
		<-left
		wait.Until(t, "the place is the reader's", func() bool {
			found, err := eyes.Contenders(t.Context(), "x")
			return err == nil && len(found) == i+2 && found[i+1].Mode == zklock.Shared
		})
	}
	go read(connect(t, e.Connector(), nil))
	wait.Until(t, "the last reader waits", func() bool { return nodes(e) == places+2 })
	before := memcontrol.Of(e).Ops().Children
	mustRelease(t, theirs)
	for i := range places + 1 {
		select {
		case l := <-readers:
			defer mustRelease(t, l)
		case <-time.After(10 * time.Second):
			t.Fatalf("only %d of %d readers have the lock; %d lists since the writer's release", i, places+1, memcontrol.Of(e).Ops().Children-before)
		}
	}
	// A line that is too long to be walked is listed for each node that turns out to be a reader's.
	if lists := memcontrol.Of(e).Ops().Children - before; lists > places*(places+1) {
		t.Errorf("%d lists, want at most one for each reader and place ahead of it", lists)
	}
}
