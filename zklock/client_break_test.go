package zklock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator deletes the node of a holder. Until the holder's client learns of that, it may
// pass the deleted node on inside the process, even to a goroutine that asks for the lock when
// the next client has it. These tests run this with random delays, and check what is promised:
//
//   - If the place was granted at once, or after a short wait, it is passed on until handover_time has passed
//     since the grant, and its holders have ended when a sixth of the session timeout has passed since the
//     grant. If its node was watched during the wait, it ends when the event of that watch has arrived.
//   - The holder of the deleted node has a smaller token than the next client. A resource that has
//     seen the greater token refuses the smaller one.
//   - A hold that begins later has a greater token than both.

// brokenLock is the schedule: a holds, b deletes a's node, c is granted the lock, a goroutine of
// a asks for it, and a releases its first lock.
type brokenLock struct {
	e       *memdriver.Ensemble
	a, b, c *zklock.Client
	latency time.Duration // of a message, one way
	rng     *rand.Rand

	granted  time.Time // when a's place was granted
	broken   time.Time // when the operator knew that the node was deleted
	released time.Time // when a released its first lock
}

const (
	brokenTimeout = 10 * time.Second
	ownWatchDelay = brokenTimeout / 6
)

func newBrokenLock(t *testing.T, seed uint64, params map[string]string) *brokenLock {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 29))
	latency := []time.Duration{0, time.Millisecond, 10 * time.Millisecond}[rng.IntN(3)]
	e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(latency))
	w := &brokenLock{e: e, latency: latency, rng: rng, a: connect(t, e.Connector(), params), b: connect(t, e.Connector(), nil), c: connect(t, e.Connector(), nil)}
	for _, c := range []*zklock.Client{w.a, w.b, w.c} {
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context()))) // it knows the name
	}
	synctest.Wait()
	return w
}

// pause waits for a random time, mostly a short one.
func (w *brokenLock) pause() {
	most := []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second}[w.rng.IntN(4)]
	time.Sleep(time.Duration(w.rng.Int64N(int64(most))))
}

// breakNode deletes the node of the first holder of x.
func (w *brokenLock) breakNode(t *testing.T) {
	t.Helper()
	queue, err := w.b.Contenders(t.Context(), "x")
	if err != nil || len(queue) == 0 || !queue[0].Held {
		t.Fatalf("%v, %v; want a holder", queue, err)
	}
	if err := w.b.Break(t.Context(), "x", fmt.Sprintf("%s@%x", queue[0].Node, queue[0].Zxid)); err != nil {
		t.Fatal(err)
	}
	w.broken = time.Now()
}

// run runs the schedule from the deletion on. learns is when a's client has learned of the
// deletion at the latest; passing is until when it may pass the place on. passedOn reports
// whether the goroutine of a was granted the deleted place.
func (w *brokenLock) run(t *testing.T, first *zklock.Lock, learns, passing time.Time) (passedOn bool) {
	t.Helper()
	var resource fence.Guard
	theirs := mustLock(t)(w.c.Mutex("x").Acquire(t.Context()))
	if err := resource.Check(fence.Of(theirs)); err != nil || theirs.Token().Compare(first.Token()) <= 0 {
		t.Errorf("the next holder, with token %v after %v: %v", theirs.Token(), first.Token(), err)
	}
	w.pause()
	began := time.Now()
	second := acquiring(t, w.a.Mutex("x"), t.Context())
	w.pause()
	w.released = time.Now()
	if err := first.Release(t.Context()); err != nil && !errors.Is(err, zklock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	synctest.Wait()
	var mine *zklock.Lock
	select {
	case mine = <-second:
		passedOn = true
		if !w.released.Before(passing) || !began.Before(learns) {
			t.Errorf("the deleted place was passed on %v after its grant to a goroutine that came %v after the grant; want at most %v and %v",
				w.released.Sub(w.granted), began.Sub(w.granted), passing.Sub(w.granted), learns.Sub(w.granted))
		}
		if mine.Token().Zxid != first.Token().Zxid || mine.Token().Compare(theirs.Token()) >= 0 {
			t.Errorf("token %v after a hand-over of %v", mine.Token(), first.Token())
		}
		if err := resource.Check(fence.Of(mine)); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the resource has seen %v, and now %v: %v", theirs.Token(), mine.Token(), err)
		}
		time.Sleep(time.Until(learns))
		synctest.Wait()
		if err := mine.Err(); mine.Valid() || !errors.Is(err, zklock.ErrLost) || !theirs.Valid() {
			t.Errorf("%v after the grant of the deleted place: Valid %v, %v; the next holder: %v", time.Since(w.granted), mine.Valid(), err, theirs.Err())
		}
		second = acquiring(t, w.a.Mutex("x"), t.Context())
	default:
	}
	none(t, "a goroutine that came after the deletion was known", second)
	mustRelease(t, theirs)
	mine = <-second
	if mine == nil {
		return passedOn
	}
	if err := resource.Check(fence.Of(mine)); err != nil || mine.Token().Compare(theirs.Token()) <= 0 {
		t.Errorf("token %v after %v: %v", mine.Token(), theirs.Token(), err)
	}
	mustRelease(t, mine)
	return passedOn
}

func TestTokensAfterABreak(t *testing.T) {
	corekit.Short(t)
	runs := corekit.Crowd(1000)
	passedOn := 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			within := []time.Duration{100 * time.Millisecond, time.Minute}[seed%2] // the first is the default
			w := newBrokenLock(t, seed, map[string]string{"handover_time": within.String()})
			var first *zklock.Lock
			if seed%3 == 0 {
				before := mustLock(t)(w.c.Mutex("x").Acquire(t.Context()))
				waiting := acquiring(t, w.a.Mutex("x"), t.Context())
				mustRelease(t, before)
				first = <-waiting
			} else {
				first = mustLock(t)(w.a.Mutex("x").Acquire(t.Context()))
			}
			w.granted = time.Now()
			w.pause()
			w.breakNode(t)
			learns := later(w.granted.Add(ownWatchDelay+2*w.latency), w.broken.Add(4*w.latency)).Add(time.Millisecond)
			if w.run(t, first, learns, w.granted.Add(within)) {
				passedOn++
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if t.Logf("%d of %d times the deleted place was passed on", passedOn, runs); passedOn < runs/10 || passedOn > runs*9/10 {
		t.Errorf("%d of %d times the deleted place was passed on: the delays do not show both cases", passedOn, runs)
	}
}

// A client watches the node of a place that was granted after a long wait, or to a holder with
// WithRevocable. So an event reports the deletion to it.
func TestTokensAfterABreakOfAWatchedPlace(t *testing.T) {
	passedOn := 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := newBrokenLock(t, seed, map[string]string{"handover_time": "1m"})
			var first *zklock.Lock
			if seed%2 == 0 {
				before := mustLock(t)(w.c.Mutex("x").Acquire(t.Context()))
				waiting := acquiring(t, w.a.Mutex("x"), t.Context())
				time.Sleep(time.Second) // until the node is watched
				w.pause()
				mustRelease(t, before)
				first = <-waiting
			} else {
				first = mustLock(t)(w.a.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				time.Sleep(2*w.latency + time.Millisecond) // until the node is watched
			}
			w.granted = time.Now()
			w.pause()
			w.breakNode(t)
			learns := w.broken.Add(4*w.latency + time.Millisecond)
			if w.run(t, first, learns, learns) {
				passedOn++
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d times the deleted place was passed on", passedOn)
}

// A place of All, or of an acquisition without hand-over, is never passed on. So tokens rise,
// those of an election, too.
func TestTokensAfterABreakWithoutHandover(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := newBrokenLock(t, seed, map[string]string{"handover_time": "1m"})
			var first *zklock.Lock
			if seed%2 == 0 {
				first = mustLock(t)(allOf(w.a, "w", "x").Acquire(t.Context()))
			} else {
				first = mustLock(t)(w.a.Mutex("x").Acquire(t.Context(), zklock.WithoutHandover()))
			}
			w.granted = time.Now()
			over := ended(first)
			w.pause()
			w.breakNode(t)
			learns := later(w.granted.Add(ownWatchDelay+2*w.latency), w.broken.Add(4*w.latency)).Add(time.Millisecond)
			if w.run(t, first, learns, w.granted) {
				t.Error("the deleted place was passed on")
			}
			if at := <-over; at.After(later(learns, w.released)) {
				t.Errorf("the lock ended %v after its grant, want at most %v", at.Sub(w.granted), learns.Sub(w.granted))
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A client without a connection learns nothing, so it may pass on a place, or take up one that it
// has kept, until its lease ends. After a reconnect it reads its nodes within a sixth of the
// session timeout.
func TestTokensAfterABreakOfAClientThatIsCutOff(t *testing.T) {
	corekit.Short(t)
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := newBrokenLock(t, seed, map[string]string{"keep": "1h"})
			keep(t, w.e, w.a.Mutex("x"))
			kept := mustLock(t)(w.a.Mutex("x").Acquire(t.Context()))
			mustRelease(t, kept)
			time.Sleep(ownWatchDelay + time.Second) // its node is watched
			cut := memdriver.AroundSession(w.e.Sessions()[0])
			w.e.Partition(cut)
			since := time.Now()
			w.breakNode(t)
			theirs := mustLock(t)(w.c.Mutex("x").Acquire(t.Context()))
			w.pause()
			mine := soon(t, "a client that is cut off, and has kept the name", acquiring(t, w.a.Mutex("x"), t.Context()))
			var resource fence.Guard
			if err := resource.Check(fence.Of(theirs)); err != nil {
				t.Error(err)
			}
			if err := resource.Check(fence.Of(mine)); !errors.Is(err, fence.ErrStale) || mine.Token().Zxid != kept.Token().Zxid {
				t.Errorf("the resource has seen %v, and now %v: %v", theirs.Token(), mine.Token(), err)
			}
			over := ended(mine)
			limit := since.Add(brokenTimeout)
			if seed%2 == 0 {
				w.pause()
				before := w.a.Stats().Reconnects
				for w.e.Heal(cut); w.a.Stats().Reconnects == before && mine.Err() == nil; {
					time.Sleep(time.Millisecond)
				}
				limit = time.Now().Add(ownWatchDelay + 2*w.latency + time.Millisecond)
			}
			if at := <-over; at.After(limit) || mine.Valid() || !errors.Is(mine.Err(), zklock.ErrLost) {
				t.Errorf("the lock ended %v after the connection was lost, %v later than promised: %v", at.Sub(since), at.Sub(limit), mine.Err())
			}
			w.e.Heal(cut)
			next := acquiring(t, w.a.Mutex("x"), t.Context())
			none(t, "a goroutine that came after the loss", next)
			mustRelease(t, theirs)
			if l := <-next; l.Token().Compare(theirs.Token()) <= 0 {
				t.Errorf("token %v after %v", l.Token(), theirs.Token())
			} else {
				mustRelease(t, l)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
