package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
)

// Ports are picked below the ranges that systems use for outgoing connections. So no other process gets
// a server's port by chance while the server is down for a moment. A process picks from a slice of them,
// which few others have.
const (
	firstPort = 12000
	lastPort  = 32000
	slice     = 500
)

// given has the ports that this process has picked.
var given struct {
	mu    sync.Mutex
	ports map[int]bool // guarded by mu
}

// FreePorts returns n ports on loopback that no process listens on, and that it has not returned before.
// Another process may still take one.
func FreePorts(n int) ([]int, error) {
	given.mu.Lock()
	defer given.mu.Unlock()
	if given.ports == nil {
		given.ports = make(map[int]bool)
	}
	first := firstPort + os.Getpid()%((lastPort-firstPort)/slice)*slice
	var ports []int
	for range 10 * slice {
		if len(ports) == n {
			return ports, nil
		}
		port := first + rand.IntN(slice)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		given.ports[port] = true
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("found only %d of %d free ports from %d to %d", len(ports), n, first, first+slice-1)
}
