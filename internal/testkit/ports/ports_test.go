package ports

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestRefusing: connections to the address are refused, no listener can take it, and no other one gets
// its port from the system.
func TestRefusing(t *testing.T) {
	addr := Refusing(t)
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range 500 {
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v, want the connection refused", err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if held = append(held, l); l.Addr().String() == addr {
			t.Fatal("a listener got the address")
		}
	}
	if l, err := net.Listen("tcp", addr); err == nil {
		_ = l.Close()
		t.Error("a listener took the address")
	}
}
