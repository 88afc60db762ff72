package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestNamesUsedOnceLeaveTheRootAsItWas: the client removes the znodes of names that it no
// longer uses. The server itself would not look for empty containers for an hour. Znodes that
// others created stay, with the same version numbers, whether this client has used them as
// locks or not. ZKLOCK_NAMES changes the number of names.
func TestNamesUsedOnceLeaveTheRootAsItWas(t *testing.T) {
	long.Parallel(t)
	ensemble.Require(t)
	n := long.Count(t, "ZKLOCK_NAMES", 500, 5000)
	server := ensemble.Start(t, ensemble.Config{ContainerCheckInterval: time.Hour})
	raw := dialRaw(t, server.Hosts(), 10*time.Second)
	c := dial(t, server.Hosts(), quick())
	root := rootOf(t)
	kept := acquire(t, c.Mutex("kept"))

	const container = 4 // the flag of a container
	theirs := []string{root + "/settings", root + "/settings/below", root + "/lock", root + "/empty", root + "/container"}
	was := map[string]*zk.Stat{}
	for i, path := range theirs {
		create, flag := raw.Create, int32(0)
		if i == len(theirs)-1 {
			create, flag = raw.CreateContainer, container
		}
		if _, err := create(path, []byte(path[:9*(i%2)]), flag, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range theirs {
		was[path] = stat(t, raw, path)
	}
	used := []string{"lock", "empty", "container"}
	for _, name := range used {
		release(t, acquire(t, c.Mutex(name)))
	}
	before := stat(t, raw, root)

	began := time.Now()
	var wg sync.WaitGroup
	const goroutines = 100
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < n; i += goroutines {
				l, err := c.Mutex(fmt.Sprint("name-", i)).Acquire(within(t))
				if err == nil {
					err = l.Release(within(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	most := stat(t, raw, root)
	eventually(t, "the root has no more children than before", func() bool { return stat(t, raw, root).NumChildren <= before.NumChildren })
	after := stat(t, raw, root)
	t.Logf("the root's children and cversion: before %d and %d; after %d names, in %v, %d and %d; %v later %d and %d\n%v", before.NumChildren, before.Cversion,
		n, took, most.NumChildren, most.Cversion, time.Since(began)-took, after.NumChildren, after.Cversion, server.Settings(quickSession, 1, fmt.Sprint("name-", n-1)))
	if after.NumChildren != before.NumChildren || after.Version != before.Version || after.Czxid != before.Czxid {
		t.Errorf("the root was %+v, is %+v", before, after)
	}
	for _, path := range theirs {
		now, was := stat(t, raw, path), was[path]
		if slices.Contains(used, strings.TrimPrefix(path, root+"/")) {
			// Queue nodes were created and deleted below it.
			was.Cversion, was.Pzxid = now.Cversion, now.Pzxid
		}
		if *now != *was {
			t.Errorf("%s was %+v, is %+v", path, *was, *now)
		}
	}
	if kept.Err() != nil || !kept.Valid() {
		t.Errorf("the lock that was held meanwhile: %v, valid: %v, want it to be held still", kept.Err(), kept.Valid())
	}
	release(t, kept)
}

func stat(t *testing.T, raw *zk.Conn, path string) *zk.Stat {
	t.Helper()
	there, stat, err := raw.Exists(path)
	if err != nil || !there {
		t.Fatalf("%s: %v, %v", path, there, err)
	}
	return stat
}
