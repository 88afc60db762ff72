package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// Two processes share a real ZooKeeper and a collector, and nothing else. The wait span of
// one process links to the request of the other.
func TestCollectorSeesTheLinkFromWaiterToHolder(t *testing.T) {
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{})
	collector := listen(t)
	url := zk.URL("/shop", nil)
	holder := start(t, "-name", "holder", "-url", url, "-otlp", collector.addr, "-every", "100ms")
	waiter := start(t, "-name", "waiter", "-url", url, "-otlp", collector.addr, "-every", "100ms")

	onlooker, err := zklock.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer onlooker.Close()
	queue := func() []zklock.Contender {
		found, err := onlooker.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	// The first request holds the lock until its client hangs up.
	ctx, hangUp := context.WithCancel(t.Context())
	held := post(ctx, "http://"+holder.http+"/orders/42/pay?for=10m")
	eventually(t, "the order is held", func() bool { return len(queue()) == 1 })
	waited := post(t.Context(), "http://"+waiter.http+"/orders/42/pay?for=1ms")
	eventually(t, "the other request waits", func() bool {
		// In the queue it does not wait yet: it does once it watches the holder, in the same
		// request as it reads what that one has written.
		watches, err := zk.Server(0).FourLetter("wchc")
		if err != nil {
			t.Fatal(err)
		}
		found := queue()
		if len(found) != 2 {
			return false
		}
		_, waiters, _ := strings.Cut(watches, fmt.Sprintf("%#x\n", found[1].Session))
		waiters, _, _ = strings.Cut(waiters, "0x")
		return strings.Contains(waiters, found[0].Node)
	})
	hangUp()
	if err := <-held; err == nil {
		t.Error("the request whose client hung up got an answer")
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	holder.stop() // sends the spans and metrics that were not sent yet
	waiter.stop()

	request, blocker := collector.one(t, "holder", "POST /orders/{id}/pay"), collector.one(t, "holder", "zklock.acquire")
	slow, acquired, wait := collector.one(t, "waiter", "POST /orders/{id}/pay"), collector.one(t, "waiter", "zklock.acquire"), collector.one(t, "waiter", "zklock.wait")
	if len(wait.links) != 1 || wait.links[0] != request.trace+"/"+blocker.id {
		t.Errorf("the wait span links to %v, want %s/%s", wait.links, request.trace, blocker.id)
	}
	if blocker.trace != request.trace || blocker.parent != request.id {
		t.Error("the linked span is not part of the holder's request")
	}
	if wait.trace != slow.trace || wait.parent != acquired.id || acquired.parent != slow.id {
		t.Error("the wait span is not part of the waiter's request")
	}
	if slow.trace == request.trace {
		t.Error("both requests are in one trace")
	}
	if release := collector.one(t, "waiter", "zklock.release"); len(release.links) != 1 || release.links[0] != slow.trace+"/"+acquired.id {
		t.Errorf("the release links to %v, want its acquisition", release.links)
	}
	if blocker.attributes["server.address"] != "127.0.0.1" || acquired.attributes["zklock.outcome"] != "acquired" {
		t.Errorf("wrong attributes: %v of the holder's acquisition, %v of the waiter's", blocker.attributes, acquired.attributes)
	}
	for _, m := range []string{"holder/zklock.acquire.duration", "waiter/zklock.wait.duration", "waiter/zklock.sessions"} {
		if !collector.metrics[m] {
			t.Errorf("the collector did not get the metric %s", m)
		}
	}
}

// post sends a request. When it has ended, the channel gets its error or nil.
func post(ctx context.Context, url string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(r); err == nil {
				err = resp.Body.Close()
			}
		}
		ended <- err
	}()
	return ended
}
