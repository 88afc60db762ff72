package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

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

// Attempt is a request's attempt to acquire its names on one session.
type Attempt struct {
	Desk    *Desk
	Request *Request

	// recalls is set for a try that finds only places ahead that their clients may keep. It
	// waits for them to be recalled, but no longer than recallWait.
	recalls bool
}
