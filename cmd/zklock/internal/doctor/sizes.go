package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Sizes of requests that servers are asked to read: a little less than each, as the default of jute.maxbuffer
// is a little less than 1 MiB.
const (
	leastAsked = 4 << 10
	mostAsked  = 1 << 20
	asksLess   = 8 << 10 // the driver sends nothing larger than mostAsked less this

	// trusted is a jute.maxbuffer that clients do not ask servers about.
	trusted = 32 << 10
)

// asks returns the size of the request that shows whether a server has a limit: clients ask with the same.
func asks(limit int) int { return limit - min(asksLess, limit/16) }

// limits returns a jute.maxbuffer that a server seems to have at least, and one that it has not: it cuts the connection
// under a request that is a little smaller. key is another one of interest, jute_maxbuffer. Each request is for a znode that
// does not exist.
func limits(ctx context.Context, d driver.Driver, u driver.URL, key int) (reads, cuts int) {
	connector, err := d.OpenConnector(u)
	if err != nil {
		return 0, 0
	}
	defer connector.Close()
	session, err := connector.Connect(ctx, 10*time.Second)
	if err != nil {
		return 0, 0
	}
	defer func() { _ = session.Close(ctx) }()
	ask := func(size int) (known bool) {
		_, err := session.Get(ctx, "/"+strings.Repeat("x", asks(size)))
		switch {
		case errors.Is(err, driver.ErrNoNode), errors.Is(err, driver.ErrNoAuth):
			reads = size
		case errors.Is(err, driver.ErrConnLoss) && ctx.Err() == nil:
			cuts = size
		default:
			return false
		}
		return true
	}
	for size := mostAsked; size >= leastAsked && reads == 0; size /= 2 {
		if !ask(size) {
			return 0, 0
		}
	}
	if reads < key && key < cuts && !ask(key) {
		return 0, 0
	}
	return reads, cuts
}

// sizes reports whether the servers read what clients send.
func (r *Report) sizes(p Patient, servers []server) {
	known := slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return s.err != nil || s.reads == 0 && s.cuts == 0 })
	if len(known) == 0 {
		return
	}
	low := slices.MinFunc(known, func(a, b server) int { return cmp.Compare(a.reads, b.reads) })
	switch {
	case low.cuts > 0 && p.MaxBuffer >= asks(low.cuts):
		r.toDo("jute.maxbuffer", fmt.Sprintf("%s reads no request of %s, and jute_maxbuffer=%d is more: it cuts connections, and a session may have more queue nodes than the servers can delete", low.host, bytes(low.cuts), p.MaxBuffer),
			fmt.Sprintf("set jute_maxbuffer in the URL of all clients to the servers' jute.maxbuffer, %s or a little less, or raise that", bytes(max(low.reads, leastAsked))))
	case low.cuts > 0:
		r.ok("jute.maxbuffer", "%s reads requests of %s and none of %s: jute_maxbuffer=%d is less", low.host, bytes(low.reads), bytes(low.cuts), p.MaxBuffer)
	default:
		r.ok("jute.maxbuffer", "the servers read requests of %s", bytes(low.reads))
	}
}

// room returns the jute.maxbuffer up to which clients with this URL fill a session. They ask the servers, too.
func (p Patient) room(servers []server) int {
	limit := p.MaxBuffer
	for _, s := range servers {
		if s.err == nil && s.cuts > 0 {
			limit = min(limit, max(s.reads, trusted))
		}
	}
	return limit
}

// bytes returns a size as text.
func bytes(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// share is what a session has of the queue nodes.
type share struct {
	bytes, nodes int
	of           string // the process
}

// fullest reports which session has most bytes of paths. Clients know maxBuffer as the servers' limit: see Patient.room.
func (r *Report) fullest(shares map[int64]*share, maxBuffer int) {
	var most int64
	for id, s := range shares {
		if most == 0 || s.bytes > shares[most].bytes {
			most = id
		}
	}
	if most == 0 {
		return
	}
	s, limit := shares[most], maxBuffer/8*7
	text := fmt.Sprintf("the fullest one, %#x of %s, has %s with %d bytes of paths; a client with this URL stops at %d", uint64(most), s.of, numbered(s.nodes, "1 queue node", "%d queue nodes"), s.bytes, limit)
	switch {
	case s.bytes > limit:
		r.toDo("sessions", text+": its end may stop the servers for good", "let its process release names, and upgrade zklock there; docs/operations.md has a section about sizes")
	case s.bytes > limit/4*3:
		r.warn("sessions", text+": acquisitions fail then", "raise pool_max_sessions, or hold fewer names in one process")
	default:
		r.ok("sessions", "%s", text)
	}
}
