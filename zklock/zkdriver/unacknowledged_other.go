//go:build !linux

package zkdriver

import (
	"net"
	"time"

	"github.com/zklock/go-zklock/internal/netcontrol"
)

// limitUnacknowledged does nothing: a connection that a firewall has forgotten is given up later, by time.
func limitUnacknowledged(net.Conn, time.Duration) {}

// unacknowledged knows nothing: such a connection is left later, by time.
func unacknowledged(c net.Conn) bool { return netcontrol.Unacknowledged(c) }
