package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// chaosPermits is the number of the semaphore's permits.
	chaosPermits = 2

	// chaosHold is the longest time of a long turn. It is several times the session
	// timeout, so that a fault that outlasts a session usually meets a holder that has
	// not finished by then.
	chaosHold = 20 * time.Second
)

// job is the turn that one goroutine of a chaos worker repeats.
type job struct {
	pick func(*rand.Rand) zklock.Acquirer
	work func(*visit)
	long bool // it holds for so long that other jobs of its kind wait for it
}

// jobs returns the jobs of one worker. Each worker has one lock that it holds most of the
// time, in long turns; between them its neighbour holds that lock. So at any time each
// client holds a lock, whichever server or client a fault strikes.
func (c *chaosWorker) jobs() []job {
	always := func(a zklock.Acquirer) func(*rand.Rand) zklock.Acquirer {
		return func(*rand.Rand) zklock.Acquirer { return a }
	}
	k := c.task.Chaos
	long := func(i int) zklock.Acquirer { return c.client.Mutex(fmt.Sprint("long-", i%k.Of)) }
	one := func(rng *rand.Rand) zklock.Acquirer { return c.client.Mutex(fmt.Sprint("several-", rng.IntN(3))) }
	two := func(rng *rand.Rand) zklock.Acquirer { return zklock.All(one(rng), one(rng)) }
	rw := c.client.RWMutex("rw")
	mutex := job{pick: always(c.client.Mutex("mutex")), work: (*visit).update}
	txn := job{pick: always(c.client.Mutex("znode")), work: (*visit).updateZnode}
	reader := job{pick: always(rw.Reader()), work: (*visit).readTwice}
	permit := job{pick: always(c.client.Semaphore("permits", chaosPermits)), work: (*visit).linger}
	return []job{
		mutex, mutex,
		txn, txn,
		{pick: always(rw.Writer()), work: (*visit).update},
		reader, reader,
		permit, permit, permit,
		{pick: one, work: (*visit).update},
		{pick: two, work: (*visit).update},
		{pick: two, work: (*visit).update},
		{pick: always(long(k.Index)), work: func(v *visit) { v.stay(chaosHold) }, long: true},
		{pick: always(long(k.Index + 1)), work: func(v *visit) { v.stay(chaosHold / 100) }, long: true},
	}
}

// linger holds the lock for a moment.
func (v *visit) linger() {
	v.pause(time.Duration(v.rng.IntN(4000)) * time.Microsecond)
	v.held()
}

// update raises the registers of the lock's names by one. It may fail only if the lock is
// lost.
func (v *visit) update() {
	read, err := v.registers.read(v.lock)
	if v.turnedDown(err) {
		return
	}
	v.linger()
	if v.turnedDown(v.registers.write(v.lock, read)) {
		return
	}
	for _, name := range v.lock.Names() {
		v.count("write: " + name)
	}
}

// turnedDown reports whether the registers refused a request. It reports a violation if they
// refuse a holder that has not lost its lock, or if they fail in another way.
func (v *visit) turnedDown(err error) bool {
	switch {
	case err == nil:
		return false
	case !errors.Is(err, errStale):
		v.violation("the registers failed: %v", err)
	case v.lock.Valid():
		v.violation("%s %v: %v, although the lock is valid", v.lock.Name(), v.lock.Token(), err)
	default:
		v.count("write: stale")
	}
	return true
}

// readTwice reads a register twice as a reader, and checks that no writer wrote in between.
func (v *visit) readTwice() {
	first, err := v.registers.read(v.lock)
	if v.turnedDown(err) {
		return
	}
	v.linger()
	again, err := v.registers.read(v.lock)
	if v.turnedDown(err) {
		return
	}
	if !slices.Equal(first, again) {
		v.violation("%s: %v became %v under a reader with token %v", v.lock.Name(), first, again, v.lock.Token())
	}
}

// updateZnode writes the register in ZooKeeper twice. The register's value is the znode's version.
// The first write returns the version, and the second write must raise it by exactly one.
func (v *visit) updateZnode() {
	first, ok := v.txn()
	if !ok {
		return
	}
	v.linger()
	if second, ok := v.txn(); ok && second != first+1 {
		v.violation("%s: version %d was followed by %d under token %v", v.lock.Name(), first, second, v.lock.Token())
	}
}

// txn writes the znode, and returns its version after the write.
func (v *visit) txn() (version int32, ok bool) {
	results, err := v.lock.Txn(context.Background(), driver.SetOp(v.task.Chaos.Znode, []byte(v.lock.Token().String()), driver.AnyVersion))
	switch {
	case err == nil:
		version = results[0].Stat.Version
		v.count("txn: done")
		v.writes = append(v.writes, entry{Worker: v.task.Chaos.Index, Name: v.lock.Name(), Token: v.lock.Token(), Version: version})
		return version, true
	case errors.Is(err, zklock.ErrUnknownOutcome):
		v.count("txn: unknown")
	case errors.Is(err, zklock.ErrLost):
		v.count("txn: lost")
	case errors.Is(err, zklock.ErrUnavailable):
		v.count("txn: unavailable")
	default:
		v.violation("Txn: an error of an unknown class: %v", err)
	}
	return 0, false
}

// stay holds the lock for a random time from half of most to most. If the lock is lost, it
// usually goes on to the end of that time nevertheless. Then it writes without checking
// the lock, like a process that was stopped just after the check.
func (v *visit) stay(most time.Duration) {
	read, err := v.registers.read(v.lock)
	if v.turnedDown(err) {
		return
	}
	const step = 20 * time.Millisecond
	for range int64(most/step)/2 + v.rng.Int64N(int64(most/step)/2) {
		v.pause(step)
		if v.stop.Err() != nil || !v.held() && v.rng.IntN(100) == 0 {
			break
		}
	}
	if !v.turnedDown(v.registers.write(v.lock, read)) {
		v.count("write: " + v.lock.Name())
	}
}

// controlPath returns the path of the control's lock number i.
func controlPath(i int) string { return fmt.Sprint("/control-", i) }

// control runs one side of the trusting client, with the control's lock number i, until the
// worker stops.
func (c *chaosWorker) control(i int, side func(*trusting)) {
	k := c.task.Chaos
	t, err := newTrusting(k.Hosts, k.Timeout, controlPath(i))
	if err != nil {
		c.violation("control: %v", err)
		return
	}
	defer t.conn.Close()
	for c.stop.Err() == nil {
		if t.take() == nil {
			side(t)
		}
		c.pause(20 * time.Millisecond)
	}
}

// trust holds the control's lock for as long as the control believes that it does.
func (c *chaosWorker) trust(t *trusting) {
	defer c.trusts.Store(0)
	c.believe(t, time.Hour, func() { c.trusts.Store(t.conn.SessionID()) })
}

// covet holds the control's lock for a moment and releases it. Most of the time it waits.
func (c *chaosWorker) covet(t *trusting) {
	c.believe(t, 200*time.Millisecond, func() {})
	if err := t.conn.Delete(t.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		c.count("control: " + err.Error())
	}
	c.pause(200 * time.Millisecond)
}

// believe records for how long the control believed that it held its lock. It calls begun when the
// record has begun.
func (c *chaosWorker) believe(t *trusting, most time.Duration, begun func()) {
	e := entry{Worker: c.task.Chaos.Index, Name: t.path, Mode: zklock.Exclusive}
	for end := monotonic() + int64(most); c.stop.Err() == nil && monotonic() < end; c.pause(10 * time.Millisecond) {
		now := monotonic()
		if !t.believes() {
			if e.From != 0 { // it believed so until it knew of the end of its connection
				e.To = max(e.To, t.left.Load())
			}
			break
		}
		if e.To = now; e.From == 0 {
			e.From = now
			begun()
		}
	}
	c.journal.note(e)
}
