// Package servers runs the servers that locktest breaks.
package servers

import (
	"context"
	"errors"
	"time"
)

// Ensemble is a group of servers that serve together, such as one of ZooKeeper or of etcd, independent ones of
// Redis, or a single server. The first one has index 0. One goroutine calls the methods.
type Ensemble interface {
	// Addrs are the addresses for clients. They stay the same over restarts.
	Addrs() []string

	// Kill ends a server at once and waits for its end.
	Kill(server int) error

	// Stop suspends a server, or lets it go on.
	Stop(server int, stopped bool) error

	// Start starts a server that was killed, with the data that it had. It does not wait until the
	// server serves.
	Start(server int) error

	// Restart asks a server to end, starts it again, and waits until it serves.
	Restart(ctx context.Context, server int) error

	// Leader returns the server that leads the others; -1: none does.
	Leader(ctx context.Context) (int, error)

	// Cut holds back the bytes between a server and the others, or passes them on. It reports false if the
	// servers exchange none that it could hold back.
	Cut(server int, cut bool) bool

	// Slow makes each fsync of a server take longer. A time of 0 ends that.
	Slow(server int, by time.Duration) error

	// Jump sets the wall clock of a server forward by a time from now on. A time of 0 sets it back.
	Jump(server int, by time.Duration) error

	// Close ends all servers.
	Close() error
}

// Logged is an ensemble whose servers' transaction logs package txnlog can read.
type Logged interface {
	// Logs are the folders of the logs of all voting servers; none: the servers are not of ZooKeeper.
	Logs() []string
}

// Given is an ensemble whose servers another program runs. Locktest cannot break them.
type Given []string

// Addrs are the addresses that were given.
func (g Given) Addrs() []string { return g }

// Kill returns an error.
func (g Given) Kill(int) error { return errGiven }

// Stop returns an error.
func (g Given) Stop(int, bool) error { return errGiven }

// Start returns an error.
func (g Given) Start(int) error { return errGiven }

// Restart returns an error.
func (g Given) Restart(context.Context, int) error { return errGiven }

// Leader returns an error.
func (g Given) Leader(context.Context) (int, error) { return -1, errGiven }

// Cut reports false.
func (g Given) Cut(int, bool) bool { return false }

// Slow returns an error.
func (g Given) Slow(int, time.Duration) error { return errGiven }

// Jump returns an error.
func (g Given) Jump(int, time.Duration) error { return errGiven }

// Close does nothing.
func (g Given) Close() error { return nil }

var errGiven = errors.New("another program runs the servers: choose no fault that needs their processes")
