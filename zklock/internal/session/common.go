package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// common is what all sessions of a pool share.
type common struct {
	Settings  *Settings
	connector driver.Connector
	wg        sync.WaitGroup // the pool's goroutines: those that run sessions and deliver their notices, too

	Opened, Lost, Reconnects atomic.Uint64 // sessions; lost sessions; connections of sessions after their first

	Departures atomic.Uint64             // of sessions from servers that had fallen silent
	departure  atomic.Pointer[Departure] // the newest one; nil: there was none

	bounds bounds // of the sizes of requests

	order order // of the transactions of all sessions
}

// Patient derives the context of a caller that has had no usable session since that time.
// The context ends connect_timeout after since, with cause errs.ErrNoSession.
func (c *common) Patient(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, since.Add(c.Settings.ConnectTimeout), errs.ErrNoSession)
}

// Outage returns the error of a wait, for a session that works, that ctx has ended. Its text has the
// reason why a session has no connection, if that is known.
func (c *common) Outage(ctx context.Context) error {
	err := errs.WaitEnded(ctx, errs.ErrUnavailable)
	if !errors.Is(err, errs.ErrUnavailable) {
		return err // the client was closed, for example
	}
	if why := c.connector.Diagnose(); why != nil {
		return fmt.Errorf("%w (%v)", err, why) // why as text only: ctx has ended the wait
	}
	return err
}

// Regressed returns an error that matches errs.ErrTokenRegression if a session of the pool has found
// that the ensemble's transaction ids went back; else nil.
func (c *common) Regressed() error { return c.order.err() }

// mayFollowALoss reports whether the ensemble may have lost transactions that this client knows, since
// its earlier sessions saw it last. A session survives no such loss, or its next write finds it.
func (c *common) mayFollowALoss() bool {
	return c.Lost.Load() > 0 && c.order.newest.Load() != 0 && c.Regressed() == nil
}

// Reserve returns how many more bytes a session has for the registrations of waits, which places do not use: the
// waits of a client that is full of queue nodes may be in a circle, too.
func (c *common) Reserve() int { return c.bounds.limit(c.Settings) / 32 }
