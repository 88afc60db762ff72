package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
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

// TestClientsSpreadAgain: after a rolling restart no client is on the server that was restarted last, since all others
// had left it by then and nothing moves a session that works. With pool_max_lifetime the clients spread again with
// their next acquisitions, and lose no lock.
func TestClientsSpreadAgain(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers of its own, restarted, and a minute")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3})
	shares := func() (all []int) {
		for _, s := range e.Servers() {
			text, err := s.FourLetter("cons")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, strings.Count(text, "sid="))
		}
		return all
	}
	const many = 20
	var clients []*zklock.Client
	var held []*zklock.Lock
	for i := range many {
		c := dial(t, e.Hosts(), quick("pool_max_sessions", "1", "pool_max_lifetime", "1m"))
		clients = append(clients, c)
		if l := acquire(t, c.Mutex(fmt.Sprintf("held/%d", i))); i%2 == 0 {
			held = append(held, l)
		} else {
			release(t, l)
		}
	}
	opened := time.Now()
	for _, s := range e.Servers() {
		if err := errors.Join(s.Stop(), s.Start(), s.AwaitServing()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all clients are connected", func() bool {
			return !slices.ContainsFunc(clients, func(c *zklock.Client) bool { return c.Stats().Connected != 1 })
		})
	}
	before := shares()
	if before[2] > 0 {
		t.Errorf("after the restarts the servers have %v connections: the test is not about that", before)
	}
	eventually(t, "the sessions are old enough", func() bool { return time.Since(opened) > time.Minute })
	for _, l := range held { // a session that holds a lock stays until that is released, and the client has a new one meanwhile
		release(t, l)
	}
	for i, c := range clients {
		release(t, acquire(t, c.Mutex(fmt.Sprintf("next/%d", i))))
	}
	var after []int
	eventually(t, "each client has one session", func() bool {
		after = shares()
		return after[0]+after[1]+after[2] == many
	})
	t.Logf("connections of %d clients after a rolling restart: %v, and after pool_max_lifetime: %v", many, before, after)
	if after[2] == 0 {
		t.Errorf("the clients have not spread: %v", after)
	}
	for i, c := range clients {
		if st := c.Stats(); st.Lost != 0 || st.SessionsOpened != 2 {
			t.Errorf("client %d: %d locks lost, %d sessions", i, st.Lost, st.SessionsOpened)
		}
	}
}
