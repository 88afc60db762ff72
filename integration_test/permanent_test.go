package integration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// TestPermanentRefusalsEndAtOnce: what a server refuses for good while the root, the znode of a name
// or a queue node is made ends the call at once, with an error of package zklock. Package
// zklock has the same test on mem.
func TestPermanentRefusalsEndAtOnce(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Extra: []string{"enforceQuota=true"}})
	since(t, e, "3.7", "servers enforce quotas since")
	conn := dialRaw(t, e.Hosts(), patience)
	open := zk.WorldACL(zk.PermAll)
	for _, path := range []string{"/a", "/b", "/c", "/c/name"} {
		flags := int32(zk.FlagEphemeral)
		if path == "/c" {
			flags = 0
		}
		if _, err := conn.Create(path, nil, flags, open); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []struct{ path, data string }{
		{"/d", ""}, {"/zookeeper/quota/d", ""}, {"/zookeeper/quota/d/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"}, {"/zookeeper/quota/d/zookeeper_stats", "count=1,bytes=0"},
	} {
		if _, err := conn.Create(n.path, []byte(n.data), 0, open); err != nil {
			t.Fatalf("create %s: %v", n.path, err)
		}
	}
	for _, c := range []struct {
		what, root, acl string
		is, because     error
		says            []string
	}{
		{"an ephemeral znode above the root", "/a/x/root", "open", zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, []string{"/a/x", "ephemeral"}},
		{"an ephemeral root", "/b", "open", zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, []string{"/b/", "ephemeral"}},
		{"an ephemeral name", "/c", "open", zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, []string{"/c/name", "ephemeral"}},
		{"a quota above the root", "/d/root", "open", zklock.ErrUnavailable, driver.ErrQuotaExceeded, []string{"setquota", "/d/root"}},
		{"a quota on the root", "/d", "open", zklock.ErrUnavailable, driver.ErrQuotaExceeded, []string{"setquota", "/d/"}},
		{"an access list without an identity", "/e/root", "creator", zklock.ErrNoAuth, driver.ErrInvalidACL, []string{"access list", "/e"}},
		{"an access list of an unknown scheme", "/f/root", "nonsense:x:cdrwa", zklock.ErrNoAuth, driver.ErrInvalidACL, []string{"access list", "/f"}},
	} {
		client, err := zklock.Open(fmt.Sprintf("zk://%s%s?%s", e.Hosts(), c.root, quick("connect_timeout", patience.String(), "acl", c.acl).Encode()))
		if err != nil {
			t.Fatal(err)
		}
		for verb, call := range calls(client) {
			if verb == "Ping" && c.root == "/c" {
				continue // it looks at the root only
			}
			began := time.Now()
			err := call(within(t))
			if d := time.Since(began); d > atOnce {
				t.Errorf("%s: %s: refused after %v, want at once", c.what, verb, d)
			}
			if !errors.Is(err, c.is) || !errors.Is(err, c.because) {
				t.Errorf("%s: %s: %v, want %v because of %v", c.what, verb, err, c.is, c.because)
				continue
			}
			saysAll(t, err, c.says)
		}
		_ = client.Close()
	}
}
