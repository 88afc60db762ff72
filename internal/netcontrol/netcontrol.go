// Package netcontrol lets tests of this project put a network of their own in place of the
// machine's.
package netcontrol

import (
	"context"
	"net"
)

// Network connects to servers, and finds the addresses of names. Package zkdriver uses one that is
// among a URL's options in place of net's.
type Network interface {
	// DialContext is as that of net.Dialer.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)

	// LookupHost is as that of net.Resolver.
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// In returns the network among a URL's options; nil if there is none.
func In(options []any) Network {
	for _, o := range options {
		if n, ok := o.(Network); ok {
			return n
		}
	}
	return nil
}

// Unacknowledged reports what a connection of such a network says of itself, as the kernel says it of its own: nothing that was
// sent is acknowledged, although it was sent again.
func Unacknowledged(c net.Conn) bool {
	u, ok := c.(interface{ Unacknowledged() bool })
	return ok && u.Unacknowledged()
}
