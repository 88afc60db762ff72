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
// dropped when they were not used for a while, except for names in use.
func TestForeignZnodesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := NewShared(&NodeSettings{})
		var held atomic.Bool
		sh.inUse = func(path string) bool { return held.Load() && path == "/held" }
		desk := &Desk{Session: session.Inert(t.Context(), identified{}), Shared: sh}
		go desk.reap()
		known := func() int {
			sh.parents.mu.Lock()
			defer sh.parents.mu.Unlock()
			if sh.parents.recent.Len() != len(sh.parents.byPath) {
				t.Errorf("%d entries in the list, %d in the map", sh.parents.recent.Len(), len(sh.parents.byPath))
			}
			return len(sh.parents.byPath)
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
			if n := known(); n != 0 {
				t.Errorf("after two minutes without a use %d znodes are known", n)
			}
		}
	})
}
