package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// want is one name of a request, and how it is wanted.
type want struct {
	name string
	path string // of the lock's znode
	kind queue.Kind
}

// demand is what a place is taken for.
type demand struct {
	by     requester
	ctx    context.Context // for hooks: what the Acquire hook returned
	wants  []want
	mode   queue.Mode
	try    bool // nobody is waited for
	origin origin

	// since when there has been no usable session; zero if there is one. Of the
	// requester's goroutine only.
	since time.Time
}

// requester is who demands a place, as the place sees it.
type requester interface {
	// waits hears whom the place waits for, with that one's data, each time it begins to
	// wait for somebody.
	waits(position int, ahead queue.Node, data []byte)

	// begin makes a hold of a place whose turn it is. The session's mutex is held.
	begin(p *place, turn uint32) session.Tenant
}

func (r *demand) nodeData(s *shared) queue.Data { return s.nodeData(r.origin, r.mode) }
