package migratelock

import (
	"context"
	"errors"
	"testing"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// closing is a database driver that does nothing.
type closing struct{ database.Driver }

func (closing) Close() error { return nil }

// A lock that is granted while the driver is closed is given back.
func TestLockGrantedDuringClose(t *testing.T) {
	c, _ := zklocktest.New(t)
	w := wrap(closing{}, c.Mutex("migrations"), newSettings(defaultDriverWait, nil))
	h, err := acquire(context.Background(), w.acquirer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.keep(h); !errors.Is(err, context.Canceled) {
		t.Errorf("keep after Close: %v, want an error", err)
	}
	if h.lock.Valid() {
		t.Error("the lock was not given back")
	}
}
