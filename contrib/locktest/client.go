package locktest

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// client does one cycle after the other in a worker: it acquires a lock, works, and releases it. A
// client of a worker is what a goroutine of a program is.
type client struct {
	run  *run
	slot *slot
	rng  *rand.Rand

	long  string // the lock that it asks for, of Config.Long; "": one of Config.Locks
	keeps bool   // it has that as long as it can

	newest atomic.Int64 // when its newest cycle began whose lock it has had to the end
}

// serve does cycles from when all workers are ready until ctx ends or the run is calm. The cycle that is under way then is finished.
func (c *client) serve(ctx context.Context) {
	select {
	case <-c.run.begun:
	case <-ctx.Done():
		return
	}
	for {
		if c.run.isCalm() {
			return
		}
		p := c.slot.process(ctx)
		if p == nil {
			return
		}
		switch {
		case c.run.config.Philosophers:
			c.eat(ctx, p)
		case c.keeps:
			c.cycle(ctx, p, Lock{Name: c.long}, math.MaxInt64)
		case c.long != "":
			c.cycle(ctx, p, Lock{Name: c.long}, c.run.config.TTL/16)
		default:
			l := c.run.config.Locks[c.rng.IntN(len(c.run.config.Locks))]
			c.cycle(ctx, p, l, c.run.config.hold(c.rng))
		}
		if !pause(ctx, about(c.rng, c.run.config.Think)) {
			return
		}
	}
}

// isCalm reports whether the faults are over.
func (r *run) isCalm() bool {
	select {
	case <-r.calm:
		return true
	default:
		return false
	}
}

// probe acquires one lock, once, and reports whether it was granted before ctx ended.
func (c *client) probe(ctx context.Context, l Lock) bool {
	for {
		p := c.slot.process(ctx)
		if p == nil {
			return false
		}
		if c.cycle(ctx, p, l, 0) {
			return true
		}
		if !pause(ctx, c.run.config.TTL/10) {
			return false
		}
	}
}

// cycle acquires a lock, works for a time, and releases it. It reports whether the lock was granted.
func (c *client) cycle(ctx context.Context, p *process, what Lock, hold time.Duration) (granted bool) {
	began := c.run.history.Now()
	l := c.take(ctx, p, what, 0)
	if l == nil {
		return false
	}
	kept := c.work(ctx, p, l, hold)
	c.give(ctx, p, l)
	if kept {
		c.newest.Store(began)
	}
	return true
}

// lock is a lock that a client holds, and must give.
type lock struct {
	Lock
	id    int
	box   *box
	token history.Token
}

// take acquires a lock while its client holds that of another acquisition, or none: 0. It returns nil if the
// lock was not granted.
func (c *client) take(ctx context.Context, p *process, what Lock, holding int) *lock {
	id := c.run.ids.next()
	b := p.open(id, what.Name)
	p.send(history.Event{Kind: history.Acquire, ID: id, Name: what.Name, Shared: what.Shared, Permits: what.Permits, Holding: holding})
	m, ok := p.await(ctx, b)
	if !ok {
		p.giveUp(id)
		return nil
	}
	if m.Op != worker.Granted {
		p.close(id)
		return nil
	}
	c.run.grants.next()
	p.holds.Add(1)
	return &lock{what, id, b, history.Token(m.Token)}
}

// give releases a lock.
func (c *client) give(ctx context.Context, p *process, l *lock) {
	defer p.close(l.id)
	defer p.holds.Add(-1)
	p.send(history.Event{Kind: history.Release, ID: l.id, Name: l.Name})
	for m, ok := p.await(ctx, l.box); ok && m.Op != worker.Released && m.Op != worker.Failed; {
		m, ok = p.await(ctx, l.box)
	}
}

// work reads the register, pauses, and writes to it if the worker still holds the lock, or reads it again if the lock is shared. A long pause has
// checks in between, as long work looks now and then; one that lasts as long as it can looks often, since its newest check
// shows until when the library believed in the hold. What is lost is given up. It reports whether the lock was kept.
func (c *client) work(ctx context.Context, p *process, l *lock, hold time.Duration) (kept bool) {
	c.run.registers.access(history.Read, p, l)
	step := min(hold/2+1, c.run.config.TTL/4)
	if hold > math.MaxInt64/2 {
		step = min(c.run.config.TTL/40, mostOften)
	}
	for ; hold > 0; hold -= step {
		if !pause(ctx, min(step, hold)) || !c.holds(ctx, p, l) {
			return false
		}
		if hold > math.MaxInt64/2 && c.run.isCalm() {
			break
		}
	}
	if !c.holds(ctx, p, l) {
		return false
	}
	kind := history.Reread
	if !l.Shared {
		kind = history.Write
		p.beforeWrite(ctx)
	}
	refused := c.run.registers.access(kind, p, l)
	return !refused || !c.run.config.Recheck || c.holds(ctx, p, l)
}

// mostOften is the longest pause between two checks of a lock that is held as long as it can be. It is the resolution of
// judge.Servers.Least.
const mostOften = 100 * time.Millisecond

// holds asks the worker whether it holds the lock. An answer that took long is old: then it asks again, so
// that a write follows a check at once, as it does in a program that looks before it writes.
func (c *client) holds(ctx context.Context, p *process, l *lock) bool {
	for {
		sent := p.send(history.Event{Kind: history.Check, ID: l.id, Name: l.Name})
		m, ok := p.await(ctx, l.box)
		if !ok || m.Op != worker.Held {
			return false
		}
		if time.Since(sent) < c.run.config.TTL/8 {
			return true
		}
	}
}

// about returns a duration from 0 to twice the mean.
func about(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.Int64N(2*int64(mean) + 1))
}

// pause waits. It reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
