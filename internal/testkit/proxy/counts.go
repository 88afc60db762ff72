package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counts has the numbers that a counting proxy has counted. Requests and bytes count when
// the proxy has read them from their sender, whether or not it forwards them.
type Counts struct {
	// Handshakes is the number of session handshakes that clients sent.
	Handshakes int

	// Requests is the number of requests that clients sent, by ZooKeeper's name of the
	// operation: create, multi, getChildren2, ping, closeSession and so on.
	Requests map[string]int

	// Multis is the number of multi requests by the kinds of operations in them. A
	// key names each kind once, in the order of first appearance: "create+setData",
	// "delete", "check".
	Multis map[string]int

	// MultiOps is the number of operations in all multi requests, by their names.
	MultiOps map[string]int

	// Replies is the number of replies that servers sent, including those to pings.
	Replies int

	// Events is the number of watch events that servers sent.
	Events int

	// BytesUp is the number of bytes that clients sent.
	BytesUp int64

	// BytesDown is the number of bytes that servers sent.
	BytesDown int64
}

// RoundTrips returns the number of requests that are not pings.
func (c Counts) RoundTrips() int {
	n := 0
	for op, k := range c.Requests {
		if op != "ping" {
			n += k
		}
	}
	return n
}

// Sub returns the counts since old was taken. Zero counts are left out of the maps.
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

// String lists the counts on one line, for the messages of tests.
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

// subtract returns m minus old, without the keys whose counts did not change.
func subtract(m, old map[string]int) map[string]int {
	d := make(map[string]int)
	for k, n := range m {
		if n -= old[k]; n != 0 {
			d[k] = n
		}
	}
	return d
}

// Counts returns the counts so far. Without Config.Count it returns zero counts.
func (p *Proxy) Counts() Counts {
	if p.counter == nil {
		return Counts{}
	}
	return p.counter.snapshot()
}

// Point is a moment in the life of a request.
type Point uint8

const (
	// BeforeRequest is after the client has sent the request and before the server
	// receives it: the server will never execute it.
	BeforeRequest Point = iota

	// BeforeReply is after the server has executed the request and replied, and
	// before the client receives the reply.
	BeforeReply
)

// KillOn resets the connection that carries the next request of that kind, at that
// point. op is a key of Counts.Requests or Counts.Multis. It does so once, and then closes
// the channel. It returns an error if the proxy does not count (see Config.Count).
func (p *Proxy) KillOn(op string, at Point) (struck <-chan struct{}, err error) {
	if p.counter == nil {
		return nil, fmt.Errorf("proxy to %s: KillOn needs a proxy with Config.Count", p.Target())
	}
	return p.counter.arm(op, at), nil
}

// counter is the state that all connections of a counting proxy share.
type counter struct {
	mu    sync.Mutex
	total Counts
	traps []*trap
}

// trap is one KillOn that has not reset a connection yet.
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

// springLocked removes and returns the first trap that matches one of a request's names.
func (k *counter) springLocked(names ...string) *trap {
	for i, t := range k.traps {
		if slices.Contains(names, t.op) {
			k.traps = slices.Delete(k.traps, i, i+1)
			return t
		}
	}
	return nil
}
