package zklock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The room of a session with jute_maxbuffer=65536.
const roomOf64K = 1 << 16 / 8 * 7

// ephemerals makes transactions with one ephemeral znode each.
type ephemerals struct {
	*zklock.Lock
	t *testing.T
	c *zklock.Client
}

// path returns a path of 1,000 bytes.
func (ephemerals) path(i int) string {
	return fmt.Sprintf("/zklock/~%s%05d", strings.Repeat("e", 986), i)
}

// create creates an ephemeral znode, and returns its path.
func (e ephemerals) create(i int, mode driver.Mode, also ...driver.Op) (string, error) {
	res, err := e.Txn(e.t.Context(), append(also, driver.CreateOp(e.path(i), nil, mode, e.c.ACL()))...)
	if err != nil {
		return "", err
	}
	return res[len(also)].Path, nil
}

// fill creates ephemeral znodes until that is refused, and returns their paths.
func (e ephemerals) fill(mode driver.Mode) (paths []string) {
	e.t.Helper()
	for i := range 100 {
		path, err := e.create(i, mode)
		if err == nil {
			paths = append(paths, path)
			continue
		}
		if !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), "jute_maxbuffer=65536") {
			e.t.Fatalf("a Txn that makes another ephemeral znode: %v, want ErrTooLarge and the key", err)
		}
		return paths
	}
	e.t.Fatal("100 ephemeral znodes have room in the session")
	return nil
}

func (e ephemerals) delete(path string) {
	e.t.Helper()
	if _, err := e.Txn(e.t.Context(), driver.DeleteOp(path, driver.AnyVersion)); err != nil {
		e.t.Fatal(err)
	}
}

// The ephemeral znodes that a program makes with Txn count in the room of their session, up to half of it: the
// session's end must not stop the servers, and locks must have room.
func TestEphemeralZnodesOfTxnsHaveHalfOfTheRoom(t *testing.T) {
	for _, mode := range []driver.Mode{driver.Ephemeral, driver.EphemeralSequential} {
		synctest.Test(t, func(t *testing.T) {
			m := memdriver.New()
			c := connect(t, m.Connector(), map[string]string{"jute_maxbuffer": "65536", "pool_max_sessions": "1"})
			e := ephemerals{mustLock(t)(c.Mutex("x").Acquire(t.Context())), t, c}
			largest := func() (most int) {
				for _, size := range closing(t, m) {
					most = max(most, size)
				}
				return most
			}

			paths := e.fill(mode)
			if size := largest(); size > roomOf64K/2+100 || size < roomOf64K/2-1100 {
				t.Errorf("%v: the session has %d bytes of paths, want half of %d", mode, size, roomOf64K)
			}
			// What is deleted makes room, and so does what a transaction has not made.
			for i, path := range paths {
				e.delete(path)
				if _, err := e.create(1000+i, mode, driver.CheckOp("/zklock", 77)); !errors.Is(err, driver.ErrBadVersion) {
					t.Fatalf("%v: a Txn with a wrong version: %v", mode, err)
				}
			}
			if again := e.fill(mode); len(again) != len(paths) {
				t.Errorf("%v: %d ephemeral znodes have room when %d were deleted", mode, len(again), len(paths))
			}
			// Locks have the rest, and no more.
			for i := range 100 {
				if _, err := c.Mutex(wide(i)).Acquire(t.Context()); err != nil {
					if !errors.Is(err, zklock.ErrTooManyWaiters) {
						t.Fatal(err)
					}
					break
				}
			}
			if size := largest(); size > roomOf64K || size < roomOf64K-2000 {
				t.Errorf("%v: with locks the session has %d bytes of paths, want no more than %d, and almost as many", mode, size, roomOf64K)
			}
		})
	}
}

// A znode that another program has deleted counts until it is made again: then it counts once.
func TestEphemeralZnodeThatOthersDeleteCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memdriver.New()
		c := connect(t, m.Connector(), map[string]string{"jute_maxbuffer": "65536"})
		e := ephemerals{mustLock(t)(c.Mutex("x").Acquire(t.Context())), t, c}
		s := plain(t, m)
		for range 100 {
			path, err := e.create(0, driver.Ephemeral)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), path, driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A transaction without an answer may have been applied, so its znode counts. One that was not sent does not.
func TestEphemeralZnodeOfALostTxnCounts(t *testing.T) {
	for _, c := range []struct {
		fault faultdriver.Fault
		most  int // how many have room
	}{
		{faultdriver.LoseReply(), 28},
		{faultdriver.NotSent(), 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := memdriver.New()
			lost := faultdriver.If("about a znode of the program", func(op faultdriver.Op) bool {
				return slices.ContainsFunc(op.Paths, func(path string) bool { return strings.HasPrefix(path, "/zklock/~") })
			}, c.fault)
			client := connect(t, faultdriver.Wrap(m.Connector(), lost), map[string]string{"jute_maxbuffer": "65536"})
			l := mustLock(t)(client.Mutex("x").Acquire(t.Context()))
			e := ephemerals{l, t, client}
			n := 0
			for n < 100 {
				if _, err := e.create(n, driver.Ephemeral); errors.Is(err, driver.ErrTooLarge) {
					break
				} else if err == nil {
					t.Fatal("a Txn without an answer has succeeded")
				}
				n++
			}
			if n != c.most {
				t.Errorf("%v: %d ephemeral znodes have room, want %d", c.fault, n, c.most)
			}
		})
	}
}
