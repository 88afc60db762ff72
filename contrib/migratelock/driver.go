package migratelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/zklock/go-zklock/zklock"
)

// errClosed means that a driver was closed.
var errClosed = errors.New("the driver was closed")

// Wrap returns a database driver of golang-migrate that migrates only while it holds a, as well
// as the lock of the database itself; see [WithoutDatabaseLock]. All processes that migrate a
// database have to acquire the same name, exclusively: a is a mutex, or the writer of an
// RWMutex. Wrap makes no request.
//
// Lock fails with an error that matches database.ErrLocked if another process holds the lock.
// When the lock is lost, Run, SetVersion and Drop fail with [zklock.ErrLost] before they change
// the database, and Unlock fails too.
//
// Close gives back what is locked and ends a Lock that waits for ZooKeeper's lock. It does not end
// a wait for the database's own lock, for which the database may have a limit. golang-migrate does not unlock
// after a Lock that it has given up, see [WithWait]; so close the Migrate then.
//
// Open of the result opens another driver, as that of d does, and wraps it likewise; so the
// result can be registered under a scheme of its own. Wrap panics if d or a is nil.
func Wrap(d database.Driver, a zklock.Acquirer, opts ...Option) database.Driver {
	if d == nil || a == nil {
		panic("migratelock: Wrap with a nil argument: pass a database driver and a mutex")
	}
	return wrap(d, a, newSettings(defaultDriverWait, opts))
}

func wrap(d database.Driver, a zklock.Acquirer, s settings) *driver {
	w := &driver{Driver: d, acquirer: a, settings: s}
	w.open, w.close = context.WithCancelCause(context.Background())
	return w
}

// driver is a database driver with a lock in ZooKeeper.
//
// Invariant: a lock that was acquired is either in held before open has ended, so that Close
// gives it back, or the Lock that acquired it gives it back.
type driver struct {
	database.Driver // the other methods
	acquirer        zklock.Acquirer
	settings        settings

	open  context.Context // ends with Close
	close context.CancelCauseFunc

	mu   sync.Mutex
	held *hold // guarded by mu
}

// Open implements database.Driver.
func (w *driver) Open(url string) (database.Driver, error) {
	d, err := w.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return wrap(d, w.acquirer, w.settings), nil
}

// Lock implements database.Driver.
func (w *driver) Lock() error {
	h, err := acquire(w.open, w.acquirer, w.settings.acquire(w.settings.wait))
	if err == nil {
		err = w.keep(h)
	}
	switch {
	case err == nil:
	case w.open.Err() != nil:
		return fmt.Errorf("migratelock: lock %q: %w", w.acquirer.Name(), errClosed)
	case errors.Is(err, zklock.ErrNotAcquired):
		return fmt.Errorf("migratelock: %w: %w", database.ErrLocked, err)
	default:
		return fmt.Errorf("migratelock: lock: %w", err)
	}
	if w.settings.withoutInner {
		return nil
	}
	if err := w.Driver.Lock(); err != nil {
		if released := w.giveBack(); released != nil {
			return fmt.Errorf("%w; %w", err, released)
		}
		return err
	}
	return nil
}

// keep stores a hold for Unlock and Close. It gives the hold back if there is one already, or if
// the driver was closed.
func (w *driver) keep(h *hold) error {
	w.mu.Lock()
	err := w.open.Err()
	if err == nil && w.held != nil {
		err = errors.New("it is locked already, and was lost: unlock it first")
	}
	if err == nil {
		w.held = h
	}
	w.mu.Unlock()
	if err != nil {
		_ = h.giveBack(context.Background()) // the client logs a release that fails
	}
	return err
}

// giveBack releases the lock in ZooKeeper.
func (w *driver) giveBack() error {
	w.mu.Lock()
	h := w.held
	w.held = nil
	w.mu.Unlock()
	if h == nil {
		return fmt.Errorf("migratelock: unlock %q: %w: lock it first", w.acquirer.Name(), errNotLocked)
	}
	if err := h.giveBack(context.Background()); err != nil {
		return fmt.Errorf("migratelock: unlock: %w", err)
	}
	return nil
}

// Unlock implements database.Driver. The lock in ZooKeeper is the outer one.
func (w *driver) Unlock() error {
	var err error
	if !w.settings.withoutInner {
		err = w.Driver.Unlock()
	}
	released := w.giveBack()
	if err == nil || released == nil {
		return errors.Join(err, released)
	}
	return fmt.Errorf("%w; %w", released, err)
}

// Close implements database.Driver.
func (w *driver) Close() error {
	w.close(errClosed)
	// The database's own lock ends with its connection.
	err := w.Driver.Close()
	w.mu.Lock()
	locked := w.held != nil
	w.mu.Unlock()
	if locked {
		err = errors.Join(err, w.giveBack())
	}
	return err
}

// Run implements database.Driver.
func (w *driver) Run(migration io.Reader) error {
	if err := w.check("run a migration"); err != nil {
		return err
	}
	return w.Driver.Run(migration)
}

// SetVersion implements database.Driver.
func (w *driver) SetVersion(version int, dirty bool) error {
	if err := w.check(fmt.Sprintf("set version %d", version)); err != nil {
		return err
	}
	return w.Driver.SetVersion(version, dirty)
}

// Drop implements database.Driver.
func (w *driver) Drop() error {
	if err := w.check("drop the database"); err != nil {
		return err
	}
	return w.Driver.Drop()
}

// check returns an error if the database must not be changed, because the lock was lost. A
// program may use the driver without Lock, as it may use others; that is not an error.
func (w *driver) check(what string) error {
	w.mu.Lock()
	h := w.held
	w.mu.Unlock()
	if h == nil || h.lock.Valid() {
		return nil
	}
	err := h.lock.Err()
	if err == nil { // the lease has run out, and the loss has not been reported yet
		err = fmt.Errorf("%q: %w", h.lock.Name(), zklock.ErrLost)
	}
	return fmt.Errorf("migratelock: %s: %w: another process may be migrating the database; look at its version before you go on", what, err)
}
