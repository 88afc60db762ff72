package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// The logs and snapshots of a server, read while it runs, after a kill, and after a restart, have the znodes that it
// shows, whether the server compresses its snapshots or not. Those that are not read have an error that says what to do.
func TestTransactionLogsHaveTheTree(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for _, compression := range []string{uncompressed, "gz", "snappy"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			testLogs(t, compression)
		})
	}
}

// uncompressed stands for no compression.
const uncompressed = "plain"

func testLogs(t *testing.T, compression string) {
	c := ensemble.Config{}
	if compression != uncompressed {
		c.JavaOptions = []string{"-Dzookeeper.snapshot.compression.method=" + compression}
	}
	e := ensemble.Start(t, c)
	s := e.Server(0)
	began := time.Now().Truncate(time.Millisecond)
	client := dial(t, e.Hosts(), quick())
	conn := dialRaw(t, e.Hosts(), 10*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	changes := func(root string) {
		held := acquire(t, client.Mutex(root+"/held"))
		_ = held // until the client is closed
		release(t, acquire(t, client.Mutex(root+"/released")))
		ended := dialRaw(t, e.Hosts(), 10*time.Second)
		for _, op := range []func() error{
			func() error { _, err := conn.Create("/"+root, []byte("data"), 0, acl); return err },
			func() error {
				_, err := conn.CreateContainer("/"+root+"/container", nil, zk.FlagContainer, acl)
				return err
			},
			func() error { _, err := conn.Create("/"+root+"/deleted", nil, 0, acl); return err },
			func() error { return conn.Delete("/"+root+"/deleted", -1) },
			func() error { _, err := conn.Create("/"+root+"/ephemeral", nil, zk.FlagEphemeral, acl); return err },
			func() error {
				_, err := ended.Create("/"+root+"/of-a-session-that-ends", nil, zk.FlagEphemeral, acl)
				return err
			},
			func() error { _, err := conn.Set("/"+root, []byte("newer data"), -1); return err },
			func() error { _, err := conn.SetACL("/"+root, acl, -1); return err },
			func() error {
				_, err := conn.Multi(&zk.CreateRequest{Path: "/" + root + "/a", Acl: acl}, &zk.SetDataRequest{Path: "/" + root + "/a", Data: []byte("set"), Version: -1},
					&zk.CheckVersionRequest{Path: "/" + root, Version: -1})
				return err
			},
		} {
			if err := op(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Multi(&zk.CreateRequest{Path: "/" + root + "/b", Acl: acl}, &zk.DeleteRequest{Path: "/none", Version: -1}); err == nil {
			t.Fatal("a transaction was not refused")
		}
		ended.Close()
	}

	changes("one")
	same(t, conn, logged(t, s.Data(), began))
	s.Kill()
	whole := logged(t, s.Data(), began)
	cutAnywhere(t, s.Data(), whole)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session is connected", func() bool { return conn.State() == zk.StateHasSession }) // requests fail before that
	changes("two")
	same(t, conn, logged(t, s.Data(), began))

	// Of these files, only those since the restart.
	purged := t.TempDir()
	if err := os.CopyFS(filepath.Join(purged, "version-2"), os.DirFS(s.Data())); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(purged, "version-2", "log.*"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("%d logs, error %v", len(logs), err)
	}
	slices.SortFunc(logs, func(a, b string) int { return len(a) - len(b) })
	for _, old := range logs[:len(logs)-1] {
		if err := os.Remove(old); err != nil {
			t.Fatal(err)
		}
	}
	snapshots, err := filepath.Glob(filepath.Join(purged, "version-2", "snapshot.*"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("%d snapshots, error %v", len(snapshots), err)
	}
	if compression != uncompressed && !strings.HasSuffix(snapshots[0], "."+compression) {
		t.Skipf("%s is not compressed: servers have done that since 3.6", snapshots[0])
	}
	if compression != "snappy" {
		same(t, conn, logged(t, purged, began))
		return
	}
	_, err = txnlog.Start(purged)
	var unreadable *txnlog.UnreadableError
	if !errors.As(err, &unreadable) || !slices.Contains(snapshots, unreadable.Path) || !strings.Contains(err.Error(), "copy the folder without it") {
		t.Fatalf("error %v", err)
	}
	for _, path := range snapshots {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if tree := logged(t, purged, began); tree.At("/two") == nil || tree.At("/one") != nil {
		t.Errorf("without snapshots: %+v, and before the logs %+v", tree.At("/two"), tree.At("/one"))
	}
}

// logged returns the tree that the files of a folder have. Each transaction is one that a leader made since began.
func logged(t *testing.T, dir string, began time.Time) *txnlog.Tree {
	t.Helper()
	tree, err := txnlog.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	for x, err := range txnlog.Transactions(dir, tree.Zxid) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Zxid <= tree.Zxid || x.Time.Before(began) || x.Time.After(time.Now()) {
			t.Fatalf("transaction 0x%x of %v after 0x%x", x.Zxid, x.Time, tree.Zxid)
		}
		tree.Apply(x)
	}
	return tree
}

// same compares the znodes that a server shows with those of its files.
func same(t *testing.T, conn *zk.Conn, tree *txnlog.Tree) {
	t.Helper()
	if conn.State() != zk.StateHasSession {
		eventually(t, "the session is connected", func() bool { return conn.State() == zk.StateHasSession })
	}
	n := 0
	var walk func(at string)
	walk = func(at string) {
		names, _, err := conn.Children(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			p := path.Join(at, name)
			if p == "/zookeeper" {
				continue // it is in no transaction
			}
			data, stat, err := conn.Get(p)
			if err != nil {
				t.Fatal(err)
			}
			n++
			z := tree.At(p)
			owner := stat.EphemeralOwner
			if owner == -1<<63 {
				owner = 0 // a container
			}
			if z == nil || !bytes.Equal(z.Data, data) || z.Owner != owner || z.Zxid != stat.Czxid || z.Created.UnixMilli() != stat.Ctime {
				t.Errorf("%s has data %q and %+v, and in the log it is %+v", p, data, *stat, z)
			}
			walk(p)
		}
		logged := tree.Children(at)
		logged = slices.DeleteFunc(logged, func(z *txnlog.Znode) bool { return strings.HasPrefix(z.Path, "/zookeeper") })
		names = slices.DeleteFunc(names, func(name string) bool { return path.Join(at, name) == "/zookeeper" })
		if len(logged) != len(names) {
			t.Errorf("%s has children %q, and in the log %d", at, names, len(logged))
		}
	}
	walk("/")
	if n < 8 {
		t.Errorf("%d znodes were compared", n)
	}
}

// cutAnywhere cuts the newest log of a folder at random places. What is left of it is read, and is what the server wrote before.
func cutAnywhere(t *testing.T, dir string, whole *txnlog.Tree) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%d logs, error %v", len(logs), err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.TrimRight(content, "\x00")
	read := func(what string, content []byte) (newest int64) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "log.1"), content, 0o666); err != nil {
			t.Fatal(err)
		}
		for x, err := range txnlog.Transactions(dir, 0) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			newest = x.Zxid
		}
		return newest
	}
	before := int64(0)
	at := make([]int, 100)
	for i := range at {
		at[i] = rand.IntN(len(content))
	}
	slices.Sort(at)
	for _, n := range at {
		newest := read(fmt.Sprintf("cut at %d", n), content[:n])
		if newest < before || newest > whole.Zxid {
			t.Errorf("cut at %d, the newest transaction is 0x%x, and 0x%x a little earlier; 0x%x of the whole", n, newest, before, whole.Zxid)
		}
		before = newest
	}
	if newest := read("whole", content); newest != whole.Zxid {
		t.Errorf("the newest transaction is 0x%x, want 0x%x", newest, whole.Zxid)
	}
	broken := bytes.Clone(content)
	broken[len(broken)-10] ^= 1
	if newest := read("a bit of the last entry is wrong", broken); newest != whole.Zxid-1 {
		t.Errorf("with a wrong last entry the newest transaction is 0x%x, want 0x%x", newest, whole.Zxid-1)
	}
}
