package integration_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// TestSessionsBeginOnDifferentServers: the sessions of a client are on as many servers as
// possible, so that a server that fails takes as few of them as possible. A server that is slow may
// be left for another one: what counts is that a session asks it first.
func TestSessionsBeginOnDifferentServers(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers of its own")
	ensemble.Require(t)
	const servers = 3
	e := ensemble.Start(t, ensemble.Config{Servers: servers})
	for round := range 5 {
		var links []*proxy.Proxy
		var addrs []string
		for i := range servers {
			link, err := proxy.NewCounting(e.Server(i).Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = link.Close() })
			links, addrs = append(links, link), append(addrs, link.Addr())
		}
		c := dial(t, strings.Join(addrs, ","), quick("pool_max_sessions", strconv.Itoa(servers)))
		for i := 0; c.Stats().SessionsOpened < servers; i++ {
			release(t, acquire(t, c.Mutex(fmt.Sprintf("%d/%d", round, i))))
		}
		for i, link := range links {
			eventually(t, fmt.Sprintf("round %d: one of three sessions asks server %d", round, i), func() bool { return link.Counts().Handshakes > 0 })
		}
	}
}
