package ensemble_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// quiet drops the client's log.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial connects and waits until the server has opened the session.
func dial(t *testing.T, hosts string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(hosts, ","), timeout, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	deadline := time.After(patience)
	for {
		select {
		case ev := <-events:
			if ev.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			t.Fatalf("no session at %s within %v", hosts, patience)
		}
	}
}

var eventually = wait.Until

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneServerServes(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	began := time.Now()
	e := ensemble.Start(t, ensemble.Config{})
	t.Logf("up after %v", time.Since(began))

	conn := dial(t, e.Hosts(), 5*time.Second)
	_, err := conn.Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll))
	must(t, err)

	s := e.Server(0)
	role, err := s.Role()
	must(t, err)
	if role != ensemble.Standalone {
		t.Errorf("role %q, want %q", role, ensemble.Standalone)
	}
	before, err := s.Stats()
	must(t, err)
	_, _, err = conn.Get("/a")
	must(t, err)
	after, err := s.Stats()
	must(t, err)
	if before["packets_received"] >= after["packets_received"] {
		t.Errorf("packets_received went from %v to %v over a read", before["packets_received"], after["packets_received"])
	}
	if after["znode_count"] < 1 {
		t.Errorf("znode_count is %v", after["znode_count"])
	}
	leader, err := e.Leader()
	must(t, err)
	if leader != s {
		t.Errorf("leader is %v, want the only server", leader)
	}
	if got, want := e.URL("/r", url.Values{"a": {"b"}}), "zk://"+s.Addr()+"/r?a=b"; got != want {
		t.Errorf("URL is %q, want %q", got, want)
	}
}

func TestDataOutlivesARestart(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	s := e.Server(0)
	end := map[string]func() error{
		"/stopped": s.Stop,
		"/killed":  func() error { s.Kill(); return nil },
	}
	for path, stop := range end {
		conn := dial(t, e.Hosts(), 5*time.Second)
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		must(t, stop())
		if s.Running() || s.PID() != 0 {
			t.Fatalf("%v runs after its end", s)
		}
		if s.Stop() == nil {
			t.Error("stopping a server that is down returned no error")
		}
		must(t, s.Start())
		if s.Start() == nil {
			t.Error("starting a running server returned no error")
		}
		must(t, s.AwaitServing())
		if ok, _, err := dial(t, e.Hosts(), 5*time.Second).Exists(path); err != nil || !ok {
			t.Errorf("%s after the restart: %v, %v", path, ok, err)
		}
	}
}

func TestContainersAreReapedAtTheIntervalAskedFor(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{ContainerCheckInterval: 200 * time.Millisecond})
	conn := dial(t, e.Hosts(), 5*time.Second)
	open := zk.WorldACL(zk.PermAll)
	_, err := conn.CreateContainer("/c", nil, zk.FlagContainer, open)
	must(t, err)
	_, err = conn.Create("/c/child", nil, 0, open)
	must(t, err)
	must(t, conn.Delete("/c/child", -1))
	eventually(t, "the empty container is removed", func() bool {
		ok, _, err := conn.Exists("/c")
		return err == nil && !ok
	})
}

func TestSessionTimeoutsAreLimitedAsConfigured(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{
		TickTime:          200 * time.Millisecond,
		MinSessionTimeout: 3 * time.Second,
		MaxSessionTimeout: 7 * time.Second,
		Extra:             []string{"maxClientCnxns=41"},
		JavaOptions:       []string{"-Dzookeeper.extendedTypesEnabled=true"},
	})
	conf, err := e.Server(0).FourLetter("conf")
	must(t, err)
	for _, want := range []string{"tickTime=200", "minSessionTimeout=3000", "maxSessionTimeout=7000", "maxClientCnxns=41"} {
		if !strings.Contains(conf, want) {
			t.Errorf("conf lacks %q:\n%s", want, conf)
		}
	}
	conn := dial(t, e.Hosts(), 5*time.Second)
	if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Minute); err != nil {
		t.Errorf("creating a node with a time to live, which the Java option allows: %v", err)
	}
}

func TestEnsemblesStartInParallel(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			e, err := ensemble.New(ensemble.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestFailureShowsTheServersLog(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e, err := ensemble.New(ensemble.Config{Extra: []string{"tickTime=never"}})
	if err == nil {
		e.Close()
		t.Fatal("an ensemble with a nonsensical tickTime started")
	}
	for _, want := range []string{"ended by itself", "never"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}
