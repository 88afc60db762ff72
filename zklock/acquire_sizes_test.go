package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// longACL returns an access list with that many entries that allow everything.
func longACL(entries int) string {
	open := driver.OpenACL(driver.PermAll)[0]
	list := []string{open.Scheme + ":" + open.ID + ":cdrwa"}
	for i := range entries - 1 {
		list = append(list, fmt.Sprintf("ip:10.1.%d.%d:cdrwa", i/250, i%250))
	}
	return strings.Join(list, ",")
}

// scale is a connector that notes the sizes of the transactions of its sessions.
type scale struct {
	driver.Connector
	mu    sync.Mutex
	sizes []int // guarded by mu
}

// weighed is a session of scale.
type weighed struct {
	driver.Session
	of *scale
}

func (c *scale) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	return &weighed{s, c}, nil
}

func (s *weighed) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	size := 0
	for _, op := range ops {
		size += 30 + len(op.Path) + len(op.Data) // about what it has on the wire
		for _, a := range op.ACL {
			size += 12 + len(a.Scheme) + len(a.ID)
		}
	}
	s.of.mu.Lock()
	s.of.sizes = append(s.of.sizes, size)
	s.of.mu.Unlock()
	return s.Session.Multi(ctx, ops)
}

// A server keeps its last 500 transactions in memory. Those of a thousand callers take no more than 32 MiB of it,
// however long their names are. They are not so small either that servers are slow: docs/operations.md has what
// small ones cost.
func TestTransactionsOfAThousandCallers(t *testing.T) {
	for _, length := range []int{40, 500} {
		synctest.Test(t, func(t *testing.T) {
			e := &scale{Connector: memdriver.New(memdriver.WithLatency(time.Millisecond)).Connector()}
			c := connect(t, e, map[string]string{"pool_max_sessions": "1"})
			var done sync.WaitGroup
			for i := range 1000 {
				name := fmt.Sprint(i, strings.Repeat("x", length-4))
				done.Go(func() {
					for range 2 {
						mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
					}
				})
			}
			done.Wait()
			sum, squares, most := 0, 0, slices.Max(e.sizes)
			for _, n := range e.sizes {
				sum, squares = sum+n, squares+n*n
			}
			usual := squares / sum // the size of the transaction that a byte is in
			t.Logf("names of %d bytes: %d transactions, of %d bytes, usually %d, at most %d", length, len(e.sizes), sum/len(e.sizes), usual, most)
			if most > 32<<20/500 || usual < 16<<10 {
				t.Errorf("names of %d bytes: transactions have %d bytes usually, and %d at most; want at least %d, and at most %d", length, usual, most, 16<<10, 32<<20/500)
			}
		})
	}
}

// Many names at once share transactions, which stay within what servers read, also with a long access list.
// A caller never gets an error about what others asked for.
func TestGroupsCountTheAccessList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), map[string]string{"acl": longACL(100)})
		const many = 1000
		for range 2 { // fresh names, then known ones
			failed := make(chan error, many)
			cost := cost(e, func() {
				for i := range many {
					go func() {
						l, err := c.Mutex(fmt.Sprint(i)).Acquire(t.Context())
						if err == nil {
							err = l.Release(t.Context())
						}
						failed <- err
					}()
				}
				for range many {
					if err := <-failed; err != nil {
						t.Errorf("acquire: %v", err)
					}
				}
			})
			if cost.Multis > many/2 {
				t.Errorf("%d names cost %d transactions, want groups", many, cost.Multis)
			}
		}
	})
}
