package migratelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// errClosed means that a driver was closed.
var errClosed = errors.New("the driver was closed")

// Wrap returns a database driver of golang-migrate that migrates only while it holds a, as well
// as the lock of the database itself; see [WithoutDatabaseLock]. All processes that migrate a
// database must acquire the same name, exclusively: a is a mutex, or the writer of an RWMutex.
// Wrap makes no request.
//
// Lock fails with an error that matches database.ErrLocked if another process holds the lock.
// When the lock is lost, Run, SetVersion and Drop fail with [zklock.ErrLost] before they change
// the database, and Unlock fails too.
//
// Close gives back what is locked and ends a Lock that waits for ZooKeeper's lock. If a Run,
// SetVersion or Drop is running, Close closes the database and then waits for it, because a
// statement may still change the database. Migrate.GracefulStop ends Up between two migrations;
// so use that first. Close does not end a wait for the database's own lock, which the database
// may limit; a Lock in that wait fails when the wait ends. golang-migrate does not unlock after
// a Lock that it has given up, see [WithWait]; close the Migrate then.
//
// Open of the result calls d's Open and wraps the driver it returns, so the result can be
// registered under a scheme of its own. Wrap panics if d or a is nil.
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
// gives it back, or the Lock that acquired it gives it back. A Lock gives back its own hold only,
// and succeeds only if held is its own.
//
// Invariant: Close gives back no lock while a call runs that may change the database.
type driver struct {
	database.Driver // the other methods
	acquirer        zklock.Acquirer
	settings        settings

	open  context.Context // ends with Close
	close context.CancelCauseFunc

	mu      sync.Mutex
	held    *hold          // guarded by mu
	running sync.WaitGroup // calls that change the database; Add is guarded by mu, and not after Close
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
		return w.closed("lock")
	case errors.Is(err, zklock.ErrNotAcquired):
		return fmt.Errorf("migratelock: %w: %w", database.ErrLocked, err)
	default:
		return fmt.Errorf("migratelock: lock: %w", err)
	}
	if w.settings.withoutInner {
		return nil
	}
	err = w.Driver.Lock()
	if w.open.Err() != nil {
		return w.closed("lock") // Close gives back what was locked
	}
	switch own := w.owns(h, err != nil); {
	case !own && err == nil: // what the database has granted is given back
		return oneline.Join(w.unlocked(), w.Driver.Unlock())
	case own && err != nil:
		if released := w.release(h); released != nil {
			return fmt.Errorf("%w; %w", err, released)
		}
	}
	return err
}

// unlocked returns the error of a Lock whose hold an Unlock has given back.
func (w *driver) unlocked() error {
	return fmt.Errorf("migratelock: lock %q: %w: an Unlock has given it back, lock it again", w.acquirer.Name(), errNotLocked)
}

// closed returns the error of an operation on a driver that was closed.
func (w *driver) closed(operation string) error {
	return fmt.Errorf("migratelock: %s %q: %w", operation, w.acquirer.Name(), errClosed)
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

// owns reports whether the driver still has hold h. If it has, and takes is true, owns takes h from
// the driver. If it has not, another call has given h back, and the driver may have the hold of a
// later Lock.
func (w *driver) owns(h *hold, takes bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.held == h
	if own && takes {
		w.held = nil
	}
	return own
}

// take returns the hold, for a caller that gives it back; nil if there is none.
func (w *driver) take() *hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held
	w.held = nil
	return h
}

// release gives a hold back.
func (w *driver) release(h *hold) error {
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
	released := w.release(w.take())
	if err == nil || released == nil {
		return oneline.Join(err, released)
	}
	return fmt.Errorf("%w; %w", released, err)
}

// Close implements database.Driver.
func (w *driver) Close() error {
	w.mu.Lock()
	w.close(errClosed)
	w.mu.Unlock()
	// The end of the connection ends the database's own lock. It may also end the statement that
	// runs.
	err := w.Driver.Close()
	w.running.Wait()
	if h := w.take(); h != nil {
		err = oneline.Join(err, w.release(h))
	}
	return err
}

// Run implements database.Driver.
func (w *driver) Run(migration io.Reader) error {
	if err := w.begin("run a migration"); err != nil {
		return err
	}
	defer w.running.Done()
	return w.Driver.Run(migration)
}

// SetVersion implements database.Driver.
func (w *driver) SetVersion(version int, dirty bool) error {
	if err := w.begin(fmt.Sprintf("set version %d", version)); err != nil {
		return err
	}
	defer w.running.Done()
	return w.Driver.SetVersion(version, dirty)
}

// Drop implements database.Driver.
func (w *driver) Drop() error {
	if err := w.begin("drop the database"); err != nil {
		return err
	}
	defer w.running.Done()
	return w.Driver.Drop()
}

// begin begins a call that changes the database; the caller calls running.Done. It returns an
// error if the call must not begin, because the lock was lost, or because the driver was closed. A
// program may use the driver without Lock, as it may use others; that is not an error.
func (w *driver) begin(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open.Err() != nil {
		return w.closed(what)
	}
	if err := w.check(what); err != nil {
		return err
	}
	w.running.Add(1)
	return nil
}

// check returns an error if the lock was lost. w.mu is locked.
func (w *driver) check(what string) error {
	h := w.held
	if h == nil || h.lock.Valid() {
		return nil
	}
	err := h.lock.Err()
	if err == nil { // the lease has run out, and the loss has not been reported yet
		err = fmt.Errorf("%q: %w", h.lock.Name(), zklock.ErrLost)
	}
	return fmt.Errorf("migratelock: %s: %w: another process may be migrating the database; look at its version before you go on", what, err)
}
