package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// fillSession makes ephemeral znodes in a session of its own. They have so many bytes in the transaction that ends the session:
// 4 and its path each. Then it closes the session.
func fillSession(t *testing.T, e *ensemble.Ensemble, bytes int) {
	t.Helper()
	const each = 50_000 // a request has one of them
	conn := dialRaw(t, e.Hosts(), 10*time.Second)
	for i := 0; bytes > 0; i++ {
		path, size := fmt.Sprintf("/end-%03d-", i), min(each, bytes)
		if left := bytes - size; left > 0 && left < 4+len(path) {
			size -= 100 // the last path has room for its number
		}
		if _, err := conn.Create(path+strings.Repeat("x", size-4-len(path)), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		bytes -= size
	}
	conn.Close()
	wait.Until(t, "the server has deleted the znodes", func() bool {
		text, err := e.Server(0).FourLetter("mntr")
		return err == nil && strings.Contains(text, "zk_ephemerals_count\t0")
	})
}

// Servers since 3.6.0 write the paths of a session's ephemeral znodes into the transaction that ends it, and start again
// only if that has at most twice jute.maxbuffer, to the byte. That is what session/room.go and docs/operations.md say, and the
// matrix holds it for each line of releases: a line without the limit, or with another one, fails here.
func TestBytesOfPathsThatStopAServer(t *testing.T) {
	long.Test(t, "servers restart after sessions with megabytes of paths")
	t.Parallel()
	ensemble.Require(t)
	const (
		header   = 32 + 4 // of the transaction, and the number of paths
		digest   = 12     // of the tree, behind it
		standard = 2*0xfffff - header - digest
		low      = 2*0x10000 - header - digest
	)
	for _, c := range []struct {
		what  string
		bytes int
		java  string
		stops bool // since 3.6
	}{
		{"as many as the servers read", standard, "", false},
		{"a byte more", standard + 1, "", true},
		{"2.54 MB", 2_540_000, "", true},
		{"as many as servers with a lower limit read", low, "-Djute.maxbuffer=65536", false},
		{"a byte more than servers with a lower limit read", low + 1, "-Djute.maxbuffer=65536", true},
		{"2.54 MB, which the servers do not write", 2_540_000, "-Dzookeeper.closeSessionTxn.enabled=false", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			e := ensemble.Start(t, ensemble.Config{JavaOptions: strings.Fields(c.java)})
			version, s := versionOf(t, e), e.Server(0)
			fillSession(t, e, c.bytes)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			err := s.AwaitServing()
			t.Logf("ZooKeeper %s, %d bytes of paths: it starts again: %v", version, c.bytes, err == nil)
			if want := c.stops && minor(t, version) >= 6; (err != nil) != want || s.Logged("Unreasonable length") != want {
				t.Errorf("want that it stops: %v; %v", want, err)
			}
		})
	}
}
