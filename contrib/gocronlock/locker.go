package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// ErrDone is matched by the error of a [Locker] with [WithSlots] for a job that has run in its
// slot already. gocron skips the job then, and passes the error to AfterLockError.
var ErrDone = errors.New("the job has run in this slot already")

// Locker is a gocron.Locker. It is safe for concurrent use, by several schedulers too.
type Locker struct {
	client *zklock.Client
	settings
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker for gocron.WithDistributedLocker and
// gocron.WithDistributedJobLocker. It makes no request. It panics if c is nil.
func NewLocker(c *zklock.Client, opts ...Option) *Locker {
	if c == nil {
		panic("gocronlock: NewLocker: the Client is nil: pass one that zklock.Open returned")
	}
	return &Locker{client: c, settings: newSettings(opts)}
}

// Lock implements gocron.Locker. If it returns an error, gocron skips the job. The error matches
// [zklock.ErrNotAcquired] if another scheduler runs the job, [ErrDone] if it has run in its slot,
// and [zklock.ErrUnavailable] if the ensemble cannot be reached.
//
// With WithSlots the slot is done when gocron unlocks, also if the job has failed, because
// gocron does not pass on the job's error. Use [Once] for jobs that must run again after a
// failure.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	name := l.prefix + key
	if l.slots > 0 {
		return l.lockSlot(ctx, name)
	}
	lock, err := l.client.Mutex(name).Acquire(ctx, zklock.WithWait(l.waits()))
	if err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return held{lock}, nil
}

// held is a lock without a slot.
type held struct{ lock *zklock.Lock }

// Unlock implements gocron.Lock. The scheduler's context may have ended.
func (h held) Unlock(ctx context.Context) error { return h.lock.Release(context.WithoutCancel(ctx)) }

// slotted is a job that runs in its slot. once.Do runs on a goroutine between Lock and Unlock,
// because it wants the job as a function. Unlock ends that goroutine, and waits for it.
type slotted struct {
	finish chan struct{}  // closed by Unlock
	ended  chan slotEnded // gets the outcome of once.Do
	unlock func() error   // what Unlock does at its first call; later calls return the same
}

// slotEnded is the outcome of once.Do.
type slotEnded struct {
	ran bool
	err error
}

func (l *Locker) lockSlot(ctx context.Context, name string) (gocron.Lock, error) {
	s := &slotted{finish: make(chan struct{}), ended: make(chan slotEnded, 1)}
	s.unlock = sync.OnceValue(s.end)
	began := make(chan struct{})
	go func() {
		ran, err := once.Do(ctx, l.client, name, slotOf(l.now(), l.slots), func(context.Context) error {
			close(began)
			<-s.finish
			return nil
		}, zklock.WithWait(l.waits()))
		s.ended <- slotEnded{ran, err}
	}()
	select {
	case <-began:
		return s, nil
	case e := <-s.ended: // the job must not run
		if e.err == nil {
			e.err = ErrDone
		}
		return nil, fmt.Errorf("gocronlock: job %q: %w", name, e.err)
	}
}

// Unlock implements gocron.Lock. once.Do writes its ledger even if the scheduler's context has
// ended.
func (s *slotted) Unlock(context.Context) error { return s.unlock() }

func (s *slotted) end() error {
	close(s.finish)
	e := <-s.ended
	if e.err != nil {
		return fmt.Errorf("gocronlock: %w", e.err)
	}
	return nil
}
