// Package servers runs the servers that locktest breaks.
package servers

import "errors"

// Ensemble is a group of servers that serve together, such as one of ZooKeeper or of etcd, or a single
// server. The first one has index 0. One goroutine calls Kill and Start.
type Ensemble interface {
	// Addrs are the addresses for clients. They stay the same over restarts.
	Addrs() []string

	// Kill ends a server at once and waits for its end.
	Kill(server int) error

	// Start starts a server that was killed, with the data that it had. It does not wait until the
	// server serves.
	Start(server int) error

	// Close ends all servers.
	Close() error
}

// Given is an ensemble whose servers another program runs. Locktest cannot kill them.
type Given []string

// Addrs are the addresses that were given.
func (g Given) Addrs() []string { return g }

// Kill returns an error.
func (g Given) Kill(int) error { return errGiven }

// Start returns an error.
func (g Given) Start(int) error { return errGiven }

// Close does nothing.
func (g Given) Close() error { return nil }

var errGiven = errors.New("another program runs the servers: choose no fault that kills one")
