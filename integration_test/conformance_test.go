package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// TestConformance checks zkdriver against the contract of package driver, on real servers. So
// it also checks the contract against the behaviour of ZooKeeper.
func TestConformance(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		testConformance(t, ensemble.Config{}, driver.URL{Scheme: "zk"})
	})
	t.Run("ensemble", func(t *testing.T) {
		t.Parallel()
		testConformance(t, ensemble.Config{Servers: 3}, driver.URL{Scheme: "zk"})
	})
}

// testConformance checks zkdriver on servers, as clients of a URL use them.
func testConformance(t *testing.T, config ensemble.Config, as driver.URL) {
	// This is a test of drivers. A busy machine may stop the servers for seconds: a large SyncLimit
	// keeps the quorum together.
	config.ContainerCheckInterval, config.SyncLimit = reaping, 20
	zk := ensemble.Start(t, config)
	next := 0
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		if as.Params.Get("sasl")+fmt.Sprint(as.Options) != "[]" && strings.HasSuffix(t.Name(), "session_without_an_identity") {
			t.Skip("each session has an identity")
		}
		h := &harness{t: t, servers: zk.Servers(), as: as, next: next, links: make(map[int64]*proxy.Proxy)}
		next++
		return h
	})
}

// reaping is the time between two checks of the servers for empty containers.
const reaping = 500 * time.Millisecond

// harness is a drivertest.Harness. Each connector has a separate proxy. The proxies lead to
// the servers in turn.
type harness struct {
	t       *testing.T
	servers []*ensemble.Server
	as      driver.URL // has no hosts

	mu    sync.Mutex
	next  int                    // guarded by mu; the server for the next connector
	links map[int64]*proxy.Proxy // guarded by mu; by session id
}

var _ drivertest.Harness = (*harness)(nil)

func (h *harness) Connector() driver.Connector { return h.connector(h.as) }

func (h *harness) Authenticated() (driver.Connector, bool) {
	if h.as.Options != nil || h.as.User != "" {
		return nil, false // each session has an identity, and the tests need some without: see TestSASL
	}
	return h.connector(driver.URL{Scheme: h.as.Scheme, User: "conformance", Password: driver.NewSecret("suite")}), true
}

func (h *harness) connector(u driver.URL) driver.Connector {
	h.t.Helper()
	h.mu.Lock()
	server := h.servers[h.next%len(h.servers)]
	h.next++
	h.mu.Unlock()
	addr := server.Addr()
	if u.Scheme == "zks" {
		addr = server.SecureAddr()
	}
	p, err := proxy.New(addr)
	if err != nil {
		h.t.Fatal(err)
	}
	// This cleanup is registered before those of the sessions, so it runs after them.
	h.t.Cleanup(func() { _ = p.Close() })
	u.Hosts = []string{p.Addr()}
	c, err := zkdriver.Driver{}.OpenConnector(u)
	if err != nil {
		h.t.Fatal(err)
	}
	return &linked{Connector: c, h: h, link: p}
}

// linked is a connector that records in its harness the proxy of its sessions.
type linked struct {
	driver.Connector
	h    *harness
	link *proxy.Proxy
}

// Unwrap returns the connector without the proxy's book-keeping: see driver.CloserOf.
func (c *linked) Unwrap() driver.Connector { return c.Connector }

func (c *linked) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	if timeout == c.h.Timeout() {
		// By this node Expire sees that the session is over: all ephemeral nodes of a
		// closed session are deleted in one transaction.
		if _, err := s.Create(ctx, witness(s), nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			return nil, errors.Join(err, s.Close(ctx))
		}
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.links[s.ID()] = c.link
	return s, nil
}

// witness returns the path of an ephemeral node of a session that Expire may expire.
func witness(s driver.Session) string { return fmt.Sprintf("/witness-%x", uint64(s.ID())) }

func (h *harness) link(s driver.Session) *proxy.Proxy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[s.ID()]
}

func (h *harness) Timeout() time.Duration { return 2 * time.Second }

func (h *harness) Limits() (shortest, longest time.Duration) { return time.Second, 10 * time.Second }

// Expire cuts the session off from the servers until they have expired it.
func (h *harness) Expire(ctx context.Context, s driver.Session) error {
	c := h.Connector()
	defer c.Close()
	_, longest := h.Limits()
	observer, err := c.Connect(ctx, longest)
	if err != nil {
		return err
	}
	defer observer.Close(ctx)
	_, events, err := observer.Watch(ctx, witness(s))
	if err != nil {
		return fmt.Errorf("watch the session's ephemeral node, to see when the session expires: %w", err)
	}
	heal := h.Cut(s)
	defer heal()
	select {
	case <-events:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *harness) Kill(s driver.Session) {
	h.link(s).KillConns()
	h.link(s).Heal()
}

func (h *harness) Cut(s driver.Session) (heal func()) {
	h.link(s).Cut()
	return h.link(s).Heal
}

func (h *harness) Hold(s driver.Session) (release func(), ok bool) {
	h.link(s).Stall(proxy.Down)
	return h.link(s).Heal, true
}

func (h *harness) Reaping() time.Duration { return 2 * reaping }

func (h *harness) Parallel() bool { return true }
