package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counts is what a counting proxy has seen. Requests and bytes count when the
// proxy has read them from their sender, whether or not it forwards them.
type Counts struct {
	// Handshakes is how many session handshakes clients sent.
	Handshakes int

	// Requests is how many requests clients sent, by ZooKeeper's name of the
	// operation: create, multi, getChildren2, ping, closeSession and so on.
	Requests map[string]int

	// Multis is how many of the multi requests consisted of which kinds of
	// operation, each kind named once, in the order of first appearance:
	// "create+setData", "delete", "check".
	Multis map[string]int

	// MultiOps is how many operations there were in all multi requests.
	MultiOps map[string]int

	// Replies is how many replies servers sent, those to pings included.
	Replies int

	// Events is how many watch events servers sent.
	Events int

	// BytesUp is how many bytes clients sent.
	BytesUp int64

	// BytesDown is how many bytes servers sent.
	BytesDown int64
}

// RoundTrips is how many requests there were that are not pings.
func (c Counts) RoundTrips() int {
	n := 0
	for op, k := range c.Requests {
		if op != "ping" {
			n += k
		}
	}
	return n
}

// Sub is what was counted after old was taken.
func (c Counts) Sub(old Counts) Counts {
	c.Handshakes -= old.Handshakes
	c.Requests = subtract(c.Requests, old.Requests)
	c.Multis = subtract(c.Multis, old.Multis)
	c.MultiOps = subtract(c.MultiOps, old.MultiOps)
	c.Replies -= old.Replies
	c.Events -= old.Events
	c.BytesUp -= old.BytesUp
	c.BytesDown -= old.BytesDown
	return c
}

// String lists what was counted on one line, for messages of tests.
func (c Counts) String() string {
	var b strings.Builder
	list := func(m map[string]int) string {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
		}
		return strings.Join(parts, ", ")
	}
	fmt.Fprintf(&b, "requests (%s), multis (%s), events %d, handshakes %d, bytes %d up, %d down",
		list(c.Requests), list(c.Multis), c.Events, c.Handshakes, c.BytesUp, c.BytesDown)
	return b.String()
}

// subtract leaves out what did not change.
func subtract(m, old map[string]int) map[string]int {
	d := make(map[string]int)
	for k, n := range m {
		if n -= old[k]; n != 0 {
			d[k] = n
		}
	}
	return d
}

// Counts returns what was counted so far; nothing if the proxy was not made
// with NewCounting.
func (p *Proxy) Counts() Counts {
	if p.counter == nil {
		return Counts{}
	}
	return p.counter.snapshot()
}

// Point is a moment in the life of a request.
type Point uint8

const (
	// BeforeRequest is when the client has sent the request and the server
	// has not received it: it will never be executed.
	BeforeRequest Point = iota

	// BeforeReply is when the server has executed the request and replied,
	// and the client has not received the reply.
	BeforeReply
)

// KillOn resets the connection that carries the next request of that kind, at
// that point. op is a key of Counts.Requests or Counts.Multis. It strikes once;
// the channel is closed when it has. The proxy has to be a counting one.
func (p *Proxy) KillOn(op string, at Point) (struck <-chan struct{}, err error) {
	if p.counter == nil {
		return nil, fmt.Errorf("proxy to %s: KillOn needs NewCounting", p.Target())
	}
	return p.counter.arm(op, at), nil
}

// counter is the state all connections of a counting proxy share.
type counter struct {
	mu    sync.Mutex
	total Counts
	traps []*trap
}

// trap is one KillOn that has not struck.
type trap struct {
	op     string
	at     Point
	struck chan struct{}
}

func newCounter() *counter {
	return &counter{total: Counts{
		Requests: make(map[string]int),
		Multis:   make(map[string]int),
		MultiOps: make(map[string]int),
	}}
}

func (k *counter) snapshot() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.total
	c.Requests = maps.Clone(c.Requests)
	c.Multis = maps.Clone(c.Multis)
	c.MultiOps = maps.Clone(c.MultiOps)
	return c
}

func (k *counter) arm(op string, at Point) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := &trap{op: op, at: at, struck: make(chan struct{})}
	k.traps = append(k.traps, t)
	return t.struck
}

// springLocked takes out and returns the first trap that a request with these
// names sets off.
func (k *counter) springLocked(names ...string) *trap {
	for i, t := range k.traps {
		if slices.Contains(names, t.op) {
			k.traps = slices.Delete(k.traps, i, i+1)
			return t
		}
	}
	return nil
}
