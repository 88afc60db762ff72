package ensemble

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
)

// Ports are picked below the ranges that systems use for binds to port 0 and for outgoing
// connections (Linux: from 32768, others: from 49152). So no other process gets a
// server's port by chance while the server is down for a moment; tests have slices of their own.
const (
	firstPort = 12000
	lastPort  = 32000

	// slice is how many of them one process picks from, so that it does not get those of a server
	// that another process has stopped for a moment.
	slice = 500
)

// taken has the ports that this process has given out.
var taken struct {
	mu    sync.Mutex
	ports map[int]bool // guarded by mu
}

// ports are the ports of one server.
type ports struct {
	client, secure, quorum, election int
}

func pickPorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.client, &p.secure, &p.quorum, &p.election} {
		var err error
		if *port, err = pickPort(); err != nil {
			p.giveBack()
			return ports{}, err
		}
	}
	return p, nil
}

// pickPort finds a port that no process listens on. Another process may still take it
// before the server does. New then starts again with other ports.
func pickPort() (int, error) {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	if taken.ports == nil {
		taken.ports = make(map[int]bool)
	}
	first := firstPort + os.Getpid()%((lastPort-firstPort)/slice)*slice
	for range 10 * slice {
		port := first + rand.IntN(slice)
		if taken.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, err
		}
		taken.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("found no free port from %d to %d", first, first+slice-1)
}

// FreePort returns a port for a server that the test starts by other means, until the test is over.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ports{client: port}.giveBack)
	return port
}

// claim replaces the client port that was picked with a port that the caller asked for.
func (p *ports) claim(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("the port %d for clients is not free: %w", port, err)
	}
	taken.mu.Lock()
	defer taken.mu.Unlock()
	delete(taken.ports, p.client)
	p.client = port
	return l.Close()
}

func (p ports) giveBack() {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	for _, port := range []int{p.client, p.secure, p.quorum, p.election} {
		delete(taken.ports, port)
	}
}
