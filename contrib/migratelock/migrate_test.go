package migratelock_test

import (
	"errors"
	"io"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// shop is a database driver with a version. Several drivers may have the same version.
type shop struct {
	fake
	*version
	during func() // called in each migration
}

type version struct {
	number int
	dirty  bool
}

func (s *shop) Version() (int, bool, error) { return s.number, s.dirty, nil }
func (s *shop) SetVersion(number int, dirty bool) error {
	s.number, s.dirty = number, dirty
	return nil
}

func (s *shop) Run(migration io.Reader) error {
	s.during()
	_, err := io.Copy(io.Discard, migration)
	return err
}

// migrator returns golang-migrate's Migrate around a driver, with one migration.
func migrator(t *testing.T, d database.Driver) *migrate.Migrate {
	t.Helper()
	source, err := iofs.New(fstest.MapFS{"1_orders.up.sql": {Data: []byte("CREATE TABLE orders (id INTEGER);")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "shop", d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Up gives up before golang-migrate does, so that the driver is not left waiting.
func TestMigrateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		other, err := client(t, e).Mutex(migrations).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := migrator(t, migratelock.Wrap(&shop{version: &version{number: database.NilVersion}, during: func() {}}, c.Mutex(migrations)))
		if err := m.Up(); !errors.Is(err, database.ErrLocked) {
			t.Errorf("Up: %v, want database.ErrLocked", err)
		}
		if n := c.Stats().Waiting; n != 0 {
			t.Errorf("%d acquisitions still wait, want none", n)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Up(); err != nil {
			t.Errorf("Up later: %v", err)
		}
		if errSource, err := m.Close(); errSource != nil || err != nil {
			t.Error(errSource, err)
		}
	})
}

// If golang-migrate gives up first, the driver goes on waiting, and gets the lock. Close gives it
// back.
func TestMigrateLeavesALockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		other, err := client(t, e).Mutex(migrations).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := migratelock.Wrap(&shop{version: &version{number: database.NilVersion}, during: func() {}}, c.Mutex(migrations), migratelock.WithWait(time.Hour))
		m := migrator(t, d)
		if err := m.Up(); !errors.Is(err, migrate.ErrLockTimeout) {
			t.Errorf("Up: %v, want migrate.ErrLockTimeout", err)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := c.Stats().Held; n != 1 {
			t.Errorf("the driver holds %d locks, want 1", n)
		}
		if errSource, err := m.Close(); errSource != nil || err != nil {
			t.Error(errSource, err)
		}
		if held(t, c) {
			t.Error("Close did not give the lock back")
		}
	})
}

// After a loss the database stays dirty, this Migrate believes that it is locked, and another one
// refuses to go on.
func TestMigrateAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		v := &version{number: database.NilVersion}
		m := migrator(t, migratelock.Wrap(&shop{version: v, during: func() {
			e.ExpireAll()
			time.Sleep(10 * time.Second) // of virtual time: the client notices the loss
		}}, c.Mutex(migrations)))
		if err := m.Up(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Up: %v, want the loss", err)
		}
		if *v != (version{1, true}) {
			t.Errorf("the database is at %+v, want version 1, dirty", *v)
		}
		if err := m.Up(); !errors.Is(err, migrate.ErrLocked) {
			t.Errorf("Up once more: %v, want migrate.ErrLocked", err)
		}
		again := migrator(t, migratelock.Wrap(&shop{version: v}, c.Mutex(migrations)))
		if err := again.Up(); !errors.As(err, new(migrate.ErrDirty)) {
			t.Errorf("Up of another Migrate: %v, want migrate.ErrDirty", err)
		}
		for _, m := range []*migrate.Migrate{m, again} {
			if errSource, err := m.Close(); errSource != nil || err != nil {
				t.Error(errSource, err)
			}
		}
	})
}
