package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// since skips a test on servers older than a release, such as 3.7, and names the reason.
func since(t *testing.T, e *ensemble.Ensemble, release, why string) {
	t.Helper()
	if version := versionOf(t, e); minor(t, version) < minor(t, release) {
		t.Skipf("%s: ZooKeeper %s, this is %s", why, release, version)
	}
}

// versionOf returns the version of an ensemble's servers.
func versionOf(t *testing.T, e *ensemble.Ensemble) string {
	t.Helper()
	st, err := e.Server(0).Status()
	if err != nil {
		t.Fatal(err)
	}
	return st.Version
}

// minor returns the second number of a version.
func minor(t *testing.T, version string) int {
	t.Helper()
	parts := strings.Split(version, ".")
	if len(parts) < 2 || parts[0] != "3" {
		t.Fatalf("the version %q is not of the form 3.x", version)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// takeTurns lets clients of two servers hold a lock one after the other, several times.
func takeTurns(t *testing.T, one, other string) {
	t.Helper()
	hooks, begun := waits()
	clients := []*zklock.Client{dial(t, one, quick(), zklock.WithHooks(hooks)), dial(t, other, quick(), zklock.WithHooks(hooks))}
	l := acquire(t, clients[0].Mutex("turns"))
	for i := range 6 {
		next := try(t, within(t), clients[(i+1)%2].Mutex("turns"))
		receive(t, "the next one to wait", begun)
		next.pending(t)
		if err := l.Verify(within(t)); err != nil {
			t.Error(err)
		}
		release(t, l)
		before := l.Token()
		if l = next.must(t); l.Token().Compare(before) <= 0 {
			t.Errorf("token %v after %v", l.Token(), before)
		}
	}
	release(t, l)
}

// TestServerSettings: settings that change how servers store data or listen do not concern
// locks.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, Extra: []string{
		"quorumListenOnAllIPs=true", "digest.enabled=false", "snapshot.compression.method=gz", "multiAddress.enabled=false",
	}})
	for _, s := range e.Servers() {
		election := strings.Split(strings.TrimPrefix(s.Member(), "server."), ":")[2]
		if all, known := listensEverywhere(t, election); known && !all {
			t.Errorf("%v does not listen on all addresses: %s", s, s.Member())
		}
		if minor(t, versionOf(t, e)) < 6 {
			continue // it has neither digests of its data nor compressed snapshots
		}
		for setting, shown := range map[string]string{
			"digest.enabled":              "zookeeper.digest.enabled = false",
			"snapshot.compression.method": "version-2/snapshot.0.gz",
		} {
			if !s.Logged(shown) {
				t.Errorf("%s is not in force: %v has not logged %q", setting, s, shown)
			}
		}
	}
	takeTurns(t, e.Server(0).Addr(), e.Server(1).Addr())
}

// listensEverywhere reports whether a process listens on a port of all addresses, and whether
// this system shows that.
func listensEverywhere(t *testing.T, port string) (all, known bool) {
	t.Helper()
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	const listening = "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		known = true
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != listening {
				continue
			}
			address, hex, _ := strings.Cut(f[1], ":")
			all = all || hex == fmt.Sprintf("%04X", n) && strings.Trim(address, "0") == ""
		}
	}
	return all, known
}

// TestLocalSessions: with local sessions, a session is known to its own server only, until it
// creates its first ephemeral node. A session that holds a lock is global, so its lease is
// proven as usual.
func TestLocalSessions(t *testing.T) {
	t.Parallel()
	long.Test(t, "three servers with settings of their own")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, Extra: []string{"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"}})
	zxid := func() int64 {
		t.Helper()
		st, err := e.Server(0).Status()
		if err != nil {
			t.Fatal(err)
		}
		return st.Zxid
	}
	// A global session begins with a transaction.
	before := zxid()
	raw := dialRaw(t, e.Server(0).Addr(), patience)
	if _, _, err := raw.Exists("/"); err != nil {
		t.Fatal(err)
	}
	if after := zxid(); after != before {
		t.Fatalf("a session that has created nothing has moved the servers from %#x to %#x: they have no local sessions", before, after)
	}
	takeTurns(t, e.Server(0).Addr(), e.Server(1).Addr())
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	takeTurns(t, leader.Addr(), e.Followers()[0].Addr())
}

// TestLocalSessionsWithoutUpgrade: such servers refuse ephemeral nodes, and so all locks. The
// error says so.
func TestLocalSessionsWithoutUpgrade(t *testing.T) {
	t.Parallel()
	long.Test(t, "three servers with settings of their own")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, Extra: []string{"localSessionsEnabled=true"}})
	for _, server := range e.Servers() {
		for verb, call := range calls(dial(t, server.Addr(), quick())) {
			err := call(within(t))
			if !errors.Is(err, driver.ErrLocalSession) || errors.Is(err, driver.ErrSessionExpired) {
				t.Errorf("%v: %s: %v, want ErrLocalSession", server, verb, err)
				continue
			}
			saysAll(t, err, []string{"localSessionsUpgradingEnabled"})
		}
	}
}

// TestQuotaIsNamed: servers that enforce quotas refuse a node above the quota. The waiter gets
// an error that names the quota, and nothing stays queued.
func TestQuotaIsNamed(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Extra: []string{"enforceQuota=true"}})
	since(t, e, "3.7", "servers enforce quotas since")
	conn := dialRaw(t, e.Hosts(), patience)
	c := dial(t, e.Hosts(), quick())
	if err := c.Ping(within(t)); err != nil { // creates the root
		t.Fatal(err)
	}
	limit := "/zookeeper/quota" + rootOf(t)
	open := zk.WorldACL(zk.PermAll)
	for _, n := range []struct{ path, data string }{
		{limit, ""},
		// The root, a znode for each of two names, and two contenders.
		{limit + "/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=5"},
		{limit + "/zookeeper_stats", "count=1,bytes=0"},
	} {
		if _, err := conn.Create(n.path, []byte(n.data), 0, open); err != nil {
			t.Fatalf("create %s: %v", n.path, err)
		}
	}
	first, second := acquire(t, c.Mutex("first")), acquire(t, c.Mutex("second"))
	_, err := c.Mutex("third").Acquire(within(t))
	if !errors.Is(err, driver.ErrQuotaExceeded) {
		t.Fatalf("above the quota: %v, want ErrQuotaExceeded", err)
	}
	saysAll(t, err, []string{"setquota", rootOf(t)})
	if !first.Valid() || !second.Valid() {
		t.Error("a lock was lost because another name is above the quota")
	}
	release(t, first)
	release(t, second)
	release(t, acquire(t, c.Mutex("second")))
}

// TestReadOnlyServerGrantsNothing: a server that has lost its quorum and goes on as a read-only
// one does not serve locks. When the quorum is back, they work again.
func TestReadOnlyServerGrantsNothing(t *testing.T) {
	t.Parallel()
	long.Test(t, "two of three servers go and come back")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, JavaOptions: []string{"-Dreadonlymode.enabled=true"}})
	c := dial(t, e.Server(0).Addr(), quick("connect_timeout", "3s"))
	release(t, acquire(t, c.Mutex("x")))
	e.Server(1).Kill()
	e.Server(2).Kill()
	if err := e.Server(0).AwaitRole("read-only"); err != nil {
		t.Fatal(err)
	}
	// On a busy machine the server takes seconds to refuse a session. So the calls have a long
	// timeout, and run at the same time.
	var all sync.WaitGroup
	for verb := range calls(c) {
		call := calls(dial(t, e.Server(0).Addr(), quick("connect_timeout", "10s")))[verb] // a client of its own: in one, a try would find the other call
		all.Go(func() {
			err := call(within(t))
			if !errors.Is(err, zklock.ErrUnavailable) {
				t.Errorf("%s: %v, want ErrUnavailable", verb, err)
				return
			}
			saysAll(t, err, []string{e.Server(0).Addr(), "read-only mode"})
		})
	}
	all.Wait()
	for _, i := range []int{1, 2} {
		if err := e.Server(i).Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "locks work again", func() bool {
		l, err := c.Mutex("x").Acquire(within(t))
		return err == nil && l.Release(within(t)) == nil
	})
}

const saslProvider = "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"

// TestServerThatRequiresSASL: the driver has no SASL. Servers that demand it refuse every
// session, and the error says so.
func TestServerThatRequiresSASL(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for name, c := range map[string]struct {
		since string
		extra []string
	}{
		"sessionRequireClientSASLAuth": {"3.6", []string{"sessionRequireClientSASLAuth=true", saslProvider}},
		"enforce.auth":                 {"3.7", []string{"enforce.auth.enabled=true", "enforce.auth.schemes=sasl", saslProvider}},
	} {
		t.Run(name, func(t *testing.T) {
			e := ensemble.Start(t, ensemble.Config{Extra: c.extra})
			since(t, e, c.since, "servers have this setting since")
			for verb, call := range calls(dial(t, e.Hosts(), quick("connect_timeout", "5s"))) {
				err := call(within(t))
				if !errors.Is(err, driver.ErrAuthFailed) {
					t.Errorf("%s: %v, want ErrAuthFailed", verb, err)
					continue
				}
				saysAll(t, err, []string{"SASL"})
			}
		})
	}
}

// TestServerThatRequiresAPassword: a user in the URL is enough for servers that demand the
// scheme digest.
func TestServerThatRequiresAPassword(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Extra: []string{"enforce.auth.enabled=true", "enforce.auth.schemes=digest"}})
	since(t, e, "3.7", "servers have this setting since")
	c, err := zklock.Open("zk://user:password@" + e.Hosts() + rootOf(t) + "?tick_time=500ms")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	release(t, acquire(t, c.Mutex("x")))
	stranger, err := zklock.Open("zk://" + e.Hosts() + rootOf(t) + "?tick_time=500ms&connect_timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Ping(within(t)); !errors.Is(err, driver.ErrAuthFailed) {
		t.Errorf("without a user: %v, want ErrAuthFailed", err)
	}
	// So is that user to end the session of another process.
	u := driver.URL{Scheme: "zk", Hosts: strings.Split(e.Hosts(), ","), User: "user", Password: driver.NewSecret("password")}
	connector, err := zkdriver.Driver{}.OpenConnector(u)
	if err != nil {
		t.Fatal(err)
	}
	defer connector.Close()
	s, err := connector.Connect(within(t), 8*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	cred, _ := driver.CredentialsOf(s)
	closer, _ := driver.CloserOf(connector)
	// Its client lives, and may take the session back before the end.
	wait.Until(t, "the session is ended by its credentials", func() bool { return closer.CloseSession(within(t), cred) == nil })
}

// TestSmallRequestsOnly: servers with a small jute.maxbuffer cut the connection of a larger
// request. A lock's own requests are small. One on many names is not: its caller gets an
// error in time, and other locks go on.
func TestSmallRequestsOnly(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Djute.maxbuffer=4096"}})
	c := dial(t, e.Hosts(), quick("connect_timeout", "5s"))
	held := acquire(t, c.Mutex("held"))
	many := make([]zklock.Acquirer, 60)
	for i := range many {
		many[i] = c.Mutex("many-" + strconv.Itoa(i) + strings.Repeat("x", 100))
	}
	ctx, cancel := context.WithTimeout(within(t), 20*time.Second)
	defer cancel()
	if _, err := zklock.All(many...).Acquire(ctx); !errors.Is(err, zklock.ErrUnavailable) {
		t.Errorf("a request above the server's limit: %v, want ErrUnavailable", err)
	} else {
		saysAll(t, err, []string{"jute.maxbuffer"})
	}
	if !held.Valid() {
		t.Errorf("a lock was lost because of another request: %v", held.Err())
	}
	release(t, held)
}
