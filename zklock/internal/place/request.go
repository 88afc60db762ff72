package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Want is one name of a request, and the kind of lock that is wanted.
type Want struct {
	Name string
	Path string // of the lock's znode
	Kind queue.Kind
}

// Request is an acquisition, as far as its place needs to know it.
type Request struct {
	By     Requester
	Ctx    context.Context // for hooks: what the Acquire hook returned
	Wants  []Want
	Mode   queue.Mode
	Try    bool // it fails instead of waiting for other contenders
	Keep   bool // its place may be kept in the queue after its last use
	Origin Origin

	// NoSessionSince is since when there has been no usable session; zero if there is
	// one. Only the requester's goroutine uses it.
	NoSessionSince time.Time
}

// Requester is the owner of a request, which the place notifies.
type Requester interface {
	// Waits is called each time the place begins to wait for another contender, with that
	// contender, and when a try would have to. position is how many contenders are ahead.
	// Without Data, only the name of the contender's node is known.
	Waits(position int, ahead Entry)

	// Begin turns a place whose turn it is into a hold, and returns the hold. turn goes
	// into the hold's token. The desk's mu is held.
	Begin(p *Place, turn uint32) session.Tenant
}
