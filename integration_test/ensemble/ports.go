package ensemble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are picked below the ranges from which systems serve binds to port 0
// and outgoing connections (Linux: from 32768, others: from 49152), so nobody
// gets one by chance while the server that owns it is down for a moment.
const (
	firstPort = 12000
	lastPort  = 32000
)

// taken are the ports this process has given out.
var taken struct {
	mu    sync.Mutex
	ports map[int]bool // guarded by mu
}

// ports are those of one server.
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

// pickPort finds a port nobody listens on. Another process may still take it
// before the server does; New then starts over with others.
func pickPort() (int, error) {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	if taken.ports == nil {
		taken.ports = make(map[int]bool)
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
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
	return 0, errors.New("no free port found in 1000 tries")
}

// claim takes a port that was asked for in place of the one for clients that was picked.
func (p *ports) claim(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("port %d for clients is not free: %w", port, err)
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
