package memdriver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestRestore restores an ensemble to an older state. As with real servers, the transactions since then
// are lost, and their ids are assigned again. A client that has seen a lost one gets no connection, until
// the servers' ids have passed it, and it is never notified that its session has expired, unless it closes
// the session.
func TestRestore(t *testing.T) {
	for _, servers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(servers))
			defer e.Close()
			open := func() driver.Session {
				t.Helper()
				s, err := e.Connector().Connect(t.Context(), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			create := func(s driver.Session, path string, mode driver.Mode) int64 {
				t.Helper()
				results, err := s.Multi(t.Context(), []driver.Op{driver.CreateOp(path, nil, mode, driver.OpenACL(driver.PermAll))})
				if err != nil {
					t.Fatal(err)
				}
				return results[0].Zxid
			}
			restoreEmpty := memcontrol.Of(e).Backup()
			old, closed := open(), open()
			create(old, "/kept", driver.Ephemeral)
			create(closed, "/closed", driver.Ephemeral)
			restore := memcontrol.Of(e).Backup()
			var last int64
			for _, path := range []string{"/a", "/b", "/c"} {
				last = create(old, path, driver.Persistent)
				create(closed, path+"2", driver.Persistent)
			}
			restore(5 * time.Second)
			time.Sleep(8 * time.Second)
			for _, s := range []driver.Session{old, closed} {
				if state, _ := s.State(); state != driver.Suspended {
					t.Errorf("%d servers: a session that has seen later transactions is %v", servers, state)
				}
			}
			if err := closed.Close(t.Context()); err != nil {
				t.Errorf("%d servers: close: %v", servers, err)
			}
			fresh := open()
			defer fresh.Close(t.Context())
			for path, want := range map[string]error{"/kept": nil, "/closed": driver.ErrNoNode, "/a": driver.ErrNoNode} {
				if _, err := fresh.Get(t.Context(), path); (err == nil) != (want == nil) {
					t.Errorf("%d servers: get %s: %v, want %v", servers, path, err, want)
				}
			}
			if id := create(fresh, "/a", driver.Persistent); id > last {
				t.Errorf("%d servers: transaction %#x after %#x, want a smaller one", servers, id, last)
			}
			for _, path := range []string{"/d", "/e", "/f", "/g", "/h", "/i"} {
				create(fresh, path, driver.Persistent)
			}
			time.Sleep(time.Second)
			if state, _ := old.State(); state != driver.Connected {
				t.Errorf("%d servers: when the ids have passed those that the session has seen, it is %v", servers, state)
			}
			restoreEmpty(time.Second)
			time.Sleep(5 * time.Second)
			if state, _ := old.State(); state != driver.Suspended {
				t.Errorf("%d servers, empty: the session is %v", servers, state)
			}
			if err := old.Close(t.Context()); err != nil {
				t.Errorf("%d servers, empty: close: %v", servers, err)
			}
		})
	}
}

// The servers expire a session that the restored data have, also if no client is there: its client has closed
// it since, and connects no more.
func TestRestoredSessionExpiresWithoutClients(t *testing.T) {
	for _, servers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(servers))
			defer e.Close()
			s, err := e.Connector().Connect(t.Context(), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Create(t.Context(), "/kept", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
			restore := memcontrol.Of(e).Backup()
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			restore(time.Second)
			if !strings.Contains(e.Dump(), "kept") {
				t.Fatalf("%d servers: the restored data lack the node:\n%s", servers, e.Dump())
			}
			time.Sleep(time.Minute)
			if strings.Contains(e.Dump(), "kept") {
				t.Errorf("%d servers: the node of a session without a client is left:\n%s", servers, e.Dump())
			}
		})
	}
}
