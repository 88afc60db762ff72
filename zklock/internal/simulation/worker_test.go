package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// permits is the number of permits of a simulated semaphore. Where it changes, each acquisition asks for one to permits+1.
const permits = 2

// worker is a goroutine that uses locks. It does only what the controller assigns to it.
type worker struct {
	w        *world
	p        *process
	id       int
	commands chan func() // cap 1
	stop     context.CancelFunc
	stay     time.Duration // how long it holds the next lock at least
	writes   int
	labels   int
	trusting *trusting // used instead of the library, in runs of the control

	mu        sync.Mutex
	state     workerState // guarded by mu
	grips     []*grip     // guarded by mu; the first was acquired, the others joined it
	cancelled time.Time   // guarded by mu
}

type workerState uint8

const (
	idle    workerState = iota
	waiting             // for a lock
	holding
	busy // with a call on a lock
)

func newWorker(w *world, p *process, id int) *worker {
	k := &worker{w: w, p: p, id: id, commands: make(chan func(), 1), stop: func() {}}
	w.helpers.Go(func() {
		for f := range k.commands {
			f()
		}
	})
	return k
}

func (k *worker) String() string {
	return fmt.Sprintf("%s, with %v,", []string{"idle", "waiting", "holding", "busy"}[k.is()], k.grips)
}

func (k *worker) is() workerState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *worker) become(state workerState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = state
}

// has sets what the worker holds, and its state: holding, or idle if that is nothing.
func (k *worker) has(grips []*grip) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.grips, k.state = grips, holding
	switch len(grips) {
	case 0:
		k.state = idle
	case 1:
		if g := grips[0]; g.until.IsZero() {
			g.until = time.Now().Add(g.stay)
		}
	}
}

// cancel ends the wait.
func (k *worker) cancel() {
	k.mu.Lock()
	k.cancelled = time.Now()
	k.mu.Unlock()
	k.stop()
}

// sinceCancelled returns how long ago the wait was cancelled; 0 if it was not.
func (k *worker) sinceCancelled() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancelled.IsZero() {
		return 0
	}
	return time.Since(k.cancelled)
}

// abandon ends the worker, whatever its state is.
func (k *worker) abandon() {
	k.stop()
	close(k.commands)
}

// command chooses something that the worker can do in its state, and makes it do that.
func (k *worker) command() {
	w, n := k.w, k.w.rng.IntN(100)
	k.mu.Lock()
	state, grips, cancelled := k.state, k.grips, !k.cancelled.IsZero()
	k.mu.Unlock()
	switch state {
	case idle:
		k.stay = 0
		if w.p.slow || w.rng.IntN(4) == 0 { // possibly for longer than a session survives a partition
			k.stay = w.between(simTimeout/2, 2*simTimeout)
		}
		switch {
		case !w.breaking:
			return
		case w.p.trusting:
			k.acquireTrusting()
		default:
			k.start()
		}
	case waiting:
		if w.breaking && n < 6 && !cancelled {
			w.trace.note("worker %d: cancel", k.id)
			k.cancel()
		}
	case holding:
		g := grips[len(grips)-1]
		leave := !w.breaking || n < 45 && !time.Now().Before(g.until)
		switch {
		case leave && w.p.trusting:
			k.releaseTrusting(g)
		case w.p.trusting:
		case leave:
			k.assign(fmt.Sprint("release ", g.lock.Token()), func() { k.release(g) })
		case n < 65:
			k.assign("txn", func() { k.txn(g) })
		case n < 72:
			k.assign("verify", func() { k.verify(g) })
		case n < 80 && w.p.dialect == "zklock":
			d := w.between(time.Microsecond, simTimeout)
			k.assign("downgrade", func() {
				defer k.become(holding)
				k.downgrade(g, d)
			})
		case n < 86 && len(grips) < 3:
			k.assign("reenter", func() { k.reenter(g) })
		case n >= 86 && n < 92 && w.p.dialect == "zklock":
			k.labelHeld(g, n < 89)
		}
	}
}

// assign makes the worker's goroutine call f.
func (k *worker) assign(what string, f func()) {
	k.w.trace.note("worker %d of client %d: %s", k.id, k.p.index, what)
	k.become(busy)
	k.commands <- f
}

// start makes the worker acquire a lock of some kind.
func (k *worker) start() {
	w, c := k.w, k.p.client
	var a zklock.Acquirer
	modes := map[string]zklock.Mode{}
	name := w.name(w.rng.IntN(w.p.names))
	kinds, number := 10, 0
	switch w.p.dialect {
	case "curator", "zk":
		kinds = 6
	case "kazoo":
		kinds = 9
	}
	switch w.rng.IntN(kinds) {
	case 4, 5:
		all := []zklock.Acquirer{c.Mutex(name)}
		modes[name] = zklock.Exclusive
		for range 1 + w.rng.IntN(2) {
			other := w.name(w.rng.IntN(w.p.names))
			if kinds > 6 && w.rng.IntN(2) == 0 {
				all = append(all, c.RWMutex(other).Reader())
				if modes[other] == 0 {
					modes[other] = zklock.Shared
				}
				continue
			}
			all = append(all, c.Mutex(other))
			modes[other] = zklock.Exclusive
		}
		a = zklock.All(all...)
	case 6, 7, 8:
		a, modes[name] = c.RWMutex(name).Reader(), zklock.Shared
	case 9:
		number = 1 + w.rng.IntN(permits+1)
		a, modes["s"] = c.Semaphore("s", number), zklock.Permit
	default:
		a, modes[name] = c.Mutex(name), zklock.Exclusive
	}
	var opts []zklock.AcquireOption
	what, limit, try := "acquire", time.Duration(0), false
	switch n := w.rng.IntN(20); {
	case n < 3:
		what, try = "try", true
	case n < 8:
		limit = w.between(time.Millisecond, simTimeout)
		what = fmt.Sprint("acquire within ", limit)
		opts = append(opts, zklock.WithWait(limit))
	case n < 10:
		what = "acquire without hand-over"
		opts = append(opts, zklock.WithoutHandover())
	}
	if w.rng.IntN(4) == 0 {
		what += " with asynchronous release"
		opts = append(opts, zklock.WithAsyncRelease())
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(background)
	stop, g := k.stop, &grip{worker: k, client: c, modes: modes, permits: number, stay: k.stay, label: w.rng.IntN(10) == 0 || modes[name] == zklock.Shared && w.rng.IntN(2) == 0}
	k.mu.Lock()
	k.cancelled = time.Time{}
	k.mu.Unlock()
	k.assign(fmt.Sprintf("%s %v", what, modes), func() {
		k.become(waiting)
		defer stop()
		k.acquire(ctx, a, g, try, limit, opts)
	})
}
