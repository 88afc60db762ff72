package zklock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Curator's Revoker writes its message over all data of a node, and its holders look for exactly
// that message. Other libraries cannot be asked.
func TestRevocationWithCurator(t *testing.T) {
	for _, c := range []struct{ dialect, node, data, want string }{
		{"curator", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "10.0.0.7", "__REVOKE__"},
		{"curator", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", `{"mode":"x"}`, "__REVOKE__"},
		{"zk", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "10.0.0.7", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", "10.0.0.7", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__", "", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "", "__REVOKE__"},
		{"zk", "_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-", "theirs", ""},
		{"kazoo", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__", "theirs", ""},
	} {
		t.Run(c.dialect+" "+c.node, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				ours, theirs := inDialect(t, e.Connector(), c.dialect), newForeignSession(t, e)
				use(t, ours.Mutex("x")) // creates the znodes
				path := theirs.create(ours.Mutex("x").Path()+"/"+c.node, c.data, driver.EphemeralSequential)
				err := ours.Revoke(t.Context(), "x", path[strings.LastIndexByte(path, '/')+1:], "r")
				switch got := theirs.data(path); {
				case c.want == "" && (!errors.Is(err, zklock.ErrConflict) || got != c.data):
					t.Errorf("%v, and the data is %q; want ErrConflict and no change", err, got)
				case c.want != "" && (err != nil || got != c.want):
					t.Errorf("%v, and the data is %q, want %q", err, got, c.want)
				}
				found, err := ours.Contenders(t.Context(), "x")
				if err != nil || len(found) != 1 || !found[0].Foreign {
					t.Errorf("%+v, %v", found, err)
				}
			})
		})
	}
	for _, dialect := range []string{"curator", "zklock"} {
		t.Run("of a "+dialect+" holder", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				ours, theirs := inDialect(t, e.Connector(), dialect), newForeignSession(t, e)
				l := mustLock(t)(ours.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				h := holder(t, ours, "x")
				if _, err := theirs.Set(t.Context(), ours.Mutex("x").Path()+"/"+h.Node, []byte("__REVOKE__"), driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				if !revoked(l) || l.Err() != nil {
					t.Errorf("asked: %v; the lock: %v", revoked(l), l.Err())
				}
				if err := l.SetLabel(t.Context(), "l"); err != nil {
					t.Error(err)
				}
				if got := holder(t, ours, "x"); got.Revoked != "__REVOKE__" || got.Foreign || got.Label != "l" {
					t.Errorf("the contender is %+v", got)
				}
				mustRelease(t, l)
			})
		})
	}
}
