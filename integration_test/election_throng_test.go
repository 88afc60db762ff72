package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// throng are a thousand candidates of one election, fifty of each of twenty clients, whose
// connections go through one proxy.
type throng struct {
	proxy *proxy.Proxy
	began chan *election.Term
	done  sync.WaitGroup
}

const (
	throngClients = 20
	throngSize    = 1000
)

func newThrong(t *testing.T, hosts string, params url.Values) *throng {
	t.Helper()
	p, err := proxy.NewCounting(hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c := &throng{proxy: p, began: make(chan *election.Term, throngSize)}
	ctx, cancel := context.WithCancel(context.Background())
	var clients []*zklock.Client
	for range throngClients {
		client := dial(t, p.Addr(), params)
		if err := client.Ping(within(t)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	t.Cleanup(func() { cancel(); c.done.Wait() })
	for i := range throngSize {
		e := election.New(clients[i%throngClients], "billing", election.WithValue(fmt.Sprint(i)), election.WithLogger(nil))
		c.done.Go(func() {
			term, err := e.Campaign(ctx)
			for errors.Is(err, zklock.ErrUnavailable) && ctx.Err() == nil { // on a busy machine
				term, err = e.Campaign(ctx)
			}
			if err == nil { // it does not stand again: the requests are counted
				c.began <- term
			}
		})
	}
	conn := dialRaw(t, hosts, patience)
	eventually(t, "all candidates stand", func() bool {
		_, stat, err := conn.Get(clients[0].Mutex("billing").Path())
		return err == nil && stat.NumChildren == throngSize
	})
	return c
}

// settle waits until the candidates read nothing for a second: then the last arrivals have watched
// those ahead of them. It looks ten times in that second, because a stall of this process stops the
// candidates too.
func (c *throng) settle(t *testing.T) {
	t.Helper()
	before, quiet := reads(c.proxy.Counts()), 0
	eventually(t, "no candidate reads", func() bool {
		time.Sleep(100 * time.Millisecond)
		now := reads(c.proxy.Counts())
		if quiet++; now != before {
			before, quiet = now, 0
		}
		return quiet == 10
	})
}

// reads returns the number of requests that look at nodes.
func reads(c proxy.Counts) (n int) {
	for _, op := range []string{"getData", "getChildren", "getChildren2", "exists"} {
		n += c.Requests[op]
	}
	return n
}

// TestThousandCandidatesChangeTheirLeader: a change of the leader costs one request of the former
// leader and at most two of the next one, however many candidates wait. One of these two may be a
// list of the queue: so many candidates were ahead once that it is cheaper than a look at each.
func TestThousandCandidatesChangeTheirLeader(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "a thousand candidates")
	c := newThrong(t, calm(t).Hosts(), quick("session_timeout", calmTimeout.String(), "pool_max_sessions", "1", "connect_timeout", patience.String()))
	term := receive(t, "the first term", c.began)
	c.settle(t)
	for range 10 {
		before := c.proxy.Counts()
		resign(t, term)
		next := receive(t, "the next term", c.began)
		d := c.proxy.Counts().Sub(before)
		delete(d.Requests, "ping")
		if total(d.Requests) > 3 || d.Requests["delete"] != 1 || d.Requests["getChildren2"] > 1 || d.Events > 2 {
			t.Errorf("a change of the leader of %d candidates cost %v", throngSize, d)
		}
		if d.BytesUp > 1000 || d.BytesDown > 100<<10 { // a list of so many candidates has 62 kB
			t.Errorf("a change of the leader of %d candidates took %d bytes to the server and %d from it", throngSize, d.BytesUp, d.BytesDown)
		}
		t.Logf("%d requests %v, %d events, %d bytes to the server and %d from it", total(d.Requests), d.Requests, d.Events, d.BytesUp, d.BytesDown)
		if next.Token().Compare(term.Token()) <= 0 {
			t.Errorf("token %v after %v", next.Token(), term.Token())
		}
		term = next
	}
}

// TestThousandCandidatesWaitWithoutWrites: only the leader's session and the next one's write.
func TestThousandCandidatesWaitWithoutWrites(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "a thousand candidates are watched for 22 s")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	c := newThrong(t, e.Hosts(), quick("pool_max_sessions", "1", "connect_timeout", patience.String()))
	receive(t, "the first term", c.began)
	time.Sleep(12 * time.Second) // the leases that creations have proven would have been renewed by now
	c.settle(t)
	began, before := time.Now(), c.proxy.Counts()
	time.Sleep(10 * time.Second)
	d := c.proxy.Counts().Sub(before)
	window := time.Since(began) // longer on a busy machine, and so are the limits higher
	// A session that waits further back sends a Sync every 3 s, less 10% now and then; the leader's
	// and the next one's send one every second.
	if most := throngClients*int(window/(2700*time.Millisecond)+1) + 2*int(window/time.Second); d.Requests["sync"] > most {
		t.Errorf("%d Syncs of %d sessions in %v, want at most %d", d.Requests["sync"], throngClients, window, most)
	}
	t.Logf("in %v: %v", window, d)
	writes := total(d.Requests) - d.Requests["ping"] - d.Requests["sync"] - reads(d)
	most := 2*int(window/(1800*time.Millisecond)+1) + 2 // a write every 1.8s to 2s of two sessions
	if writes > most || reads(d) > 20 {                 // late watches of own nodes
		t.Errorf("%d writes and %d reads in %v, want at most %d and 20: those of the leader and the next candidate", writes, reads(d), window, most)
	}
}
