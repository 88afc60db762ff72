package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are picked below the ranges that systems use for outgoing connections. So no other process gets
// a server's port by chance while the server is down for a moment.
const (
	firstPort = 12000
	lastPort  = 32000
)

// FreePorts returns n ports on loopback that no process listens on. Another process may still take one.
func FreePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener // until all are picked, so that none is picked twice
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			ports, held = append(ports, port), append(held, l)
		}
	}
	return nil, fmt.Errorf("found only %d of %d free ports from %d to %d", len(ports), n, firstPort, lastPort)
}
