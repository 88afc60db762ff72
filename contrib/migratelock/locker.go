package migratelock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Locker is a lock.Locker and a lock.SessionLocker of goose. It does not use the database that
// goose passes to it. It is safe for concurrent use: a Lock waits until an earlier one of the
// same Locker was undone by Unlock.
type Locker struct {
	acquirer zklock.Acquirer
	settings settings

	// turn has one value while the Locker is locked. The goroutine that put it there owns
	// held until Unlock.
	turn chan struct{}
	held chan *hold // capacity 1; has the hold between Lock and Unlock
}

// New returns a locker for goose that acquires a. All processes that migrate a database have
// to acquire the same name, exclusively: a is a mutex, or the writer of an RWMutex. New makes
// no request. It panics if a is nil.
func New(a zklock.Acquirer, opts ...Option) *Locker {
	if a == nil {
		panic("migratelock: New: the Acquirer is nil: pass a mutex, such as client.Mutex(\"migrations/shop\")")
	}
	return &Locker{acquirer: a, settings: newSettings(defaultWait, opts), turn: make(chan struct{}, 1), held: make(chan *hold, 1)}
}

// Lock waits until this process may migrate. After an error nothing is held. The error matches
// [zklock.ErrNotAcquired] if another process has held the lock for the whole wait, and the
// error of ctx if ctx has ended. The end of ctx after Lock has returned releases nothing.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.lock(ctx) }

// Unlock gives the lock back, also if ctx has ended. It returns an error that matches
// [zklock.ErrLost] if the lock was lost before: another process may have migrated at the same
// time. If the ensemble cannot be reached, Unlock waits for a session timeout at most; then
// the client goes on in the background, and Unlock returns nil.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.unlock(ctx) }

// SessionLock is like [Locker.Lock].
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.lock(ctx) }

// SessionUnlock is like [Locker.Unlock].
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.unlock(ctx) }

func (l *Locker) lock(ctx context.Context) error {
	began := time.Now()
	if err := l.takeTurn(ctx); err != nil {
		return fmt.Errorf("migratelock: lock %q: %w", l.acquirer.Name(), err)
	}
	h, err := acquire(ctx, l.acquirer, l.settings.acquire(l.settings.wait-time.Since(began)))
	if err != nil {
		<-l.turn
		return fmt.Errorf("migratelock: lock: %w", err)
	}
	l.held <- h
	return nil
}

// takeTurn waits for the other users of this Locker.
func (l *Locker) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(l.settings.wait)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ctx.Err(), zklock.ErrNotAcquired)
	case <-timer.C:
		return fmt.Errorf("%w: this process has held it for %v", zklock.ErrNotAcquired, l.settings.wait)
	}
}

func (l *Locker) unlock(ctx context.Context) error {
	select {
	case h := <-l.held:
		err := h.giveBack(ctx)
		<-l.turn
		if err != nil {
			return fmt.Errorf("migratelock: unlock: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("migratelock: unlock %q: %w: lock it first", l.acquirer.Name(), errNotLocked)
	}
}
