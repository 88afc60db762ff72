package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Want is one name of a request, and how it is wanted.
type Want struct {
	Name string
	Path string // of the lock's znode
	Kind queue.Kind
}

// Request is what a place is taken for.
type Request struct {
	By     Requester
	Ctx    context.Context // for hooks: what the Acquire hook returned
	Wants  []Want
	Mode   queue.Mode
	Try    bool // nobody is waited for
	Origin Origin

	// since when there has been no usable session; zero if there is one. Of the
	// requester's goroutine only.
	Since time.Time
}

// Requester is who demands a place, as the place sees it.
type Requester interface {
	// Waits hears whom the place waits for, with that one's data, each time it begins to
	// wait for somebody.
	Waits(position int, ahead queue.Node, data []byte)

	// Begin makes a hold of a place whose turn it is. The session's mutex is held.
	Begin(p *Place, turn uint32) session.Tenant
}

func (r *Request) nodeData(s *Shared) queue.Data { return s.NodeData(r.Origin, r.Mode) }
