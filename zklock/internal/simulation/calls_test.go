package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// promptly is how much later than asked for a call may return: while the controller holds
// a request back, the request does not notice that its context has ended.
const promptly = 20 * time.Millisecond

func (k *worker) acquire(ctx context.Context, a zklock.Acquirer, g *grip, try bool, limit time.Duration, opts []zklock.AcquireOption) {
	g.called = k.w.model.tick()
	asked := k.w.model.asks(g)
	began := time.Now()
	var lock *zklock.Lock
	var err error
	if try {
		lock, err = a.TryAcquire(ctx, opts...)
	} else {
		lock, err = a.Acquire(ctx, opts...)
	}
	took := time.Since(began)
	k.w.trace.note("worker %d: acquired %v %v", k.id, token(lock), class(err))
	if limit > 0 && took > limit+promptly {
		k.w.model.violate("error", "worker %d was to wait for %v and waited for %v: %v", k.id, limit, took, err)
	}
	if late := k.sinceCancelled(); late > promptly {
		k.w.model.violate("error", "worker %d went on waiting for %v after it was cancelled", k.id, late)
	}
	k.w.model.answered(asked, g, err)
	if k.w.model.mayRegress() && zklock.Reason(err) == "token_regression" {
		k.p.back.Store(true)
	} else if !errors.Is(err, zklock.ErrTooManyWaiters) || k.w.p.limit == 0 {
		k.expect("acquire", err, zklock.ErrNotAcquired, zklock.ErrUnavailable, zklock.ErrClosed)
	}
	if err != nil {
		k.has(nil)
		return
	}
	g.lock = lock
	k.w.model.granted(g)
	if g.label {
		k.label(g, simTimeout)
	}
	k.has([]*grip{g})
}

// handle returns the library's lock, in runs with the library.
func (g *grip) handle() *zklock.Lock { return g.lock.(*zklock.Lock) }

func token(l *zklock.Lock) string {
	if l == nil {
		return "nothing"
	}
	return l.Token().String()
}

// class returns the package's error that err matches. The cause is left out: it may depend on
// the order of two events at one instant.
func class(err error) error {
	for _, known := range []error{zklock.ErrLost, zklock.ErrReleasePending, zklock.ErrReleased, zklock.ErrUnknownOutcome,
		zklock.ErrBadEnsemble, zklock.ErrUnavailable, zklock.ErrNotAcquired, zklock.ErrClosed, zklock.ErrConflict, zklock.ErrTooManyWaiters, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// expect checks that an error matches one of those that the call may return, and of the errors
// without a parent only one.
func (k *worker) expect(what string, err error, known ...error) {
	if err == nil {
		return
	}
	if of := corekit.BranchesOf(err); len(of) > 1 {
		k.w.model.violate("error", "worker %d: %s: %v matches %v", k.id, what, err, of)
	}
	for _, target := range known {
		if errors.Is(err, target) {
			return
		}
	}
	k.w.model.violate("error", "worker %d: %s: %v", k.id, what, err)
}

func (k *worker) release(g *grip) {
	began := time.Now()
	call := k.w.model.releasing(g)
	err := g.handle().Release(background)
	k.w.trace.note("worker %d: released %v", k.id, class(err))
	k.expect("release", err, zklock.ErrLost, zklock.ErrReleasePending)
	if took := time.Since(began); took > simTimeout+promptly {
		k.w.model.violate("error", "worker %d: a release took %v", k.id, took)
	}
	if again := g.handle().Release(background); !errors.Is(again, zklock.ErrReleased) {
		k.w.model.violate("error", "worker %d: a second release: %v", k.id, again)
	}
	k.w.model.released(g, call)
	k.has(k.grips[:len(k.grips)-1])
}

// txn writes to the register of a name that is held exclusively.
func (k *worker) txn(g *grip) {
	defer k.become(holding)
	if k.grips[0].doubt || g.lock.Mode() != zklock.Exclusive || k.w.p.loses { // what an ensemble has lost, no lock can keep
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.modes)) {
		if g.modes[name] != zklock.Exclusive {
			continue
		}
		k.writes++
		value := strconv.Itoa(k.id) + "." + strconv.Itoa(k.writes)
		k.w.model.read(g, name, value)
		_, err := g.handle().Txn(background, driver.SetOp(register(name), []byte(value), driver.AnyVersion))
		k.w.trace.note("worker %d: wrote %v", k.id, class(err))
		// If the outcome is unknown, the write may still be applied later. So the worker
		// writes no more under this lock: it does not know what the register has.
		k.grips[0].doubt = errors.Is(err, zklock.ErrUnknownOutcome)
		k.w.model.wrote(value, err)
		k.expect("txn", err, zklock.ErrLost, zklock.ErrReleased, zklock.ErrUnknownOutcome, zklock.ErrUnavailable, driver.ErrThrottled)
		return
	}
}

func (k *worker) verify(g *grip) {
	defer k.become(holding)
	err := g.handle().Verify(background)
	k.w.trace.note("worker %d: verified %v", k.id, class(err))
	k.expect("verify", err, zklock.ErrLost, zklock.ErrUnavailable)
}

func (k *worker) downgrade(g *grip, limit time.Duration) {
	ctx, cancel := context.WithTimeout(background, limit)
	defer cancel()
	call := k.w.model.look(g)
	before := g.lock.Mode()
	err := g.handle().Downgrade(ctx)
	k.w.trace.note("worker %d: downgraded %v", k.id, class(err))
	k.expect("downgrade", err, zklock.ErrLost, zklock.ErrReleased, zklock.ErrConflict, zklock.ErrUnknownOutcome, context.DeadlineExceeded)
	k.w.model.downgraded(g, before, call)
}

// reenter acquires again what the worker holds, with the lock's context: without Reenter,
// which has to fail, and with it.
func (k *worker) reenter(g *grip) {
	defer k.become(holding)
	if len(g.modes) > 1 || g.lock.Mode() == zklock.Permit {
		return
	}
	var a zklock.Acquirer = g.client.Mutex(g.lock.Name())
	mode := g.lock.Mode() // it may have been downgraded
	if mode == zklock.Shared {
		a = g.client.RWMutex(g.lock.Name()).Reader()
	}
	ctx, cancel := g.handle().Context(background)
	defer cancel()
	if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrDeadlock) && !errors.Is(err, zklock.ErrLost) {
		k.w.model.violate("error", "worker %d: acquired what it holds, without Reenter: %v", k.id, err)
	}
	called := k.w.model.tick()
	lock, err := a.Acquire(ctx, zklock.Reenter())
	k.w.trace.note("worker %d: joined %v %v", k.id, token(lock), class(err))
	k.expect("reenter", err, zklock.ErrLost, zklock.ErrClosed, zklock.ErrNotAcquired, zklock.ErrUnavailable)
	if err != nil {
		return
	}
	joined := &grip{lock: lock, worker: k, client: g.client, modes: map[string]zklock.Mode{g.lock.Name(): mode}, called: called, joined: true}
	k.w.model.granted(joined)
	k.has(append(k.grips, joined))
}
