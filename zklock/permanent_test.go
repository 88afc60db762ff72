package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// What the ensemble refuses for good while the root, the znode of a name or a queue node is made ends
// an acquisition at once, with one error of package zklock. TestPermanentRefusalsEndAtOnce of the
// integration tests has the answers of a real server.
func TestPermanentRefusalsEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		for _, path := range []string{"/a", "/b", "/c", "/c/name", "/d"} {
			mode := driver.Ephemeral
			if path == "/c" || path == "/d" {
				mode = driver.Persistent
			}
			if _, err := s.Create(t.Context(), path, nil, mode, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		refuse := func(kind faultdriver.Kind, err error) driver.Connector {
			return faultdriver.Wrap(e.Connector(), faultdriver.On(kind, faultdriver.Fail(err)))
		}
		creator := func(c *zklock.Config) { c.ACL = "creator" }
		for _, k := range []struct {
			what      string
			connector driver.Connector
			root      string
			set       func(*zklock.Config)
			is        error
			because   error
			says      string
		}{
			{"an ephemeral znode above the root", e.Connector(), "/a/x/root", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /a/x: another program has an ephemeral znode"},
			{"an ephemeral root", e.Connector(), "/b", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /b/name: another program"},
			{"an ephemeral name", e.Connector(), "/c", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /c/name: another program"},
			{"an ephemeral znode above a name that is a path", e.Connector(), "/c/name/x", func(c *zklock.Config) { c.Dialect = "kazoo" }, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /c/name/x: another program"},
			{"a quota above the root", refuse(faultdriver.Create, driver.ErrQuotaExceeded), "/d/root", nil, zklock.ErrUnavailable, driver.ErrQuotaExceeded, "used up: /d: raise the quota"},
			{"a quota on a name", refuse(faultdriver.Multi, driver.ErrQuotaExceeded), "/d", nil, zklock.ErrUnavailable, driver.ErrQuotaExceeded, "/d/name: raise the quota"},
			{"sessions that can have no queue nodes", refuse(faultdriver.Multi, driver.ErrLocalSession), "/d", nil, zklock.ErrUnavailable, driver.ErrLocalSession, "localSessionsUpgradingEnabled"},
			{"an access list that needs an identity", e.Connector(), "/f/root", creator, zklock.ErrNoAuth, driver.ErrInvalidACL, "the servers refuse the access list"},
			{"a mistyped scheme", e.Connector(), "/f/root", func(c *zklock.Config) { c.ACL = "ip:10.0.0.1:r,digset:ops:HASH:cdrwa" }, zklock.ErrNoAuth, driver.ErrInvalidACL, `the access list (did you mean the scheme "digest"?). acl=creator`},
		} {
			cfg := zklock.Config{Connector: k.connector, Root: k.root}
			if k.set != nil {
				k.set(&cfg)
			}
			c, err := zklock.OpenConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for verb, call := range map[string]func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error){
				"Acquire": c.Mutex("name").Acquire, "TryAcquire": c.Mutex("name").TryAcquire,
			} {
				began := time.Now()
				_, err := call(t.Context())
				if !errors.Is(err, k.is) || !errors.Is(err, k.because) || len(corekit.BranchesOf(err)) != 1 || !strings.Contains(err.Error(), k.says) {
					t.Errorf("%s: %s: %v, want %v because of %v, and %q", k.what, verb, err, k.is, k.because, k.says)
				}
				if d := time.Since(began); d > 0 { // in a bubble only a wait takes time
					t.Errorf("%s: %s took %v, want no wait", k.what, verb, d)
				}
			}
			_ = c.Close()
		}
		if err := s.Close(t.Context()); err != nil { // the ephemeral znodes go with their session
			t.Fatal(err)
		}
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("name").Acquire(t.Context())))
	})
}
