// Package ports reserves TCP ports on loopback.
package ports

import (
	"net"
	"testing"
)

// Refusing returns an address where connections are refused until the test is over. A connection
// has the port at its own end, so no process can listen there. The address of a listener that was
// closed would not do: another test may get its port.
func Refusing(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = l.Close()
	})
	return conn.LocalAddr().String()
}
