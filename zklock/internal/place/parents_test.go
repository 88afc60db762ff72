package place

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// TestForeignZnodesAreForgotten: what is known about znodes that other clients have created is
// dropped when they were not used for a while, except for names in use. Then the reaper ends,
// and the next znode starts it again.
func TestForeignZnodesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := session.NewPool(&session.Settings{PoolMaxSessions: 1}, nil)
		defer pool.Close()
		sh := NewShared(&Settings{})
		var held atomic.Bool
		Serve(sh, pool, func(path string) bool { return held.Load() && path == "/held" })
		known := func() int {
			sh.parents.mu.Lock()
			defer sh.parents.mu.Unlock()
			if sh.parents.recent.Len() != len(sh.parents.byPath) {
				t.Errorf("%d entries in the list, %d in the map", sh.parents.recent.Len(), len(sh.parents.byPath))
			}
			return len(sh.parents.byPath)
		}
		running := func() bool {
			sh.parents.mu.Lock()
			defer sh.parents.mu.Unlock()
			return sh.parents.running
		}
		for range 2 {
			held.Store(true)
			for i := range 10_000 {
				sh.parents.add(parent{path: fmt.Sprint("/", i), marked: true})
			}
			sh.parents.add(parent{path: "/held", marked: true})
			sh.parents.add(parent{path: "/used", marked: true})
			sh.parents.add(parent{path: "/unmarked"})
			for range 10 { // the last is two minutes and a half later
				synctest.Wait()
				if n := known(); n != 10_003 && n != 3 {
					t.Errorf("%d znodes are known", n)
				}
				for _, path := range []string{"/used", "/unmarked"} {
					if _, _, ok := sh.parents.find(path, path == "/used"); !ok {
						t.Errorf("%s, which is in use, is not known", path)
					}
				}
				time.Sleep(15 * time.Second)
			}
			if n := known(); n != 3 {
				t.Errorf("after two minutes %d znodes are known, want the 3 in use", n)
			}
			held.Store(false)
			time.Sleep(2 * time.Minute)
			if n := known(); n != 0 || running() {
				t.Errorf("after two minutes without a use %d znodes are known, and the reaper runs: %v", n, running())
			}
		}
	})
}
