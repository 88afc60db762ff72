package ensemble

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
)

// established counts the connections to a port of 127.0.0.1.
func established(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(table)) {
		// Number, local address, remote address, state: 01 is established.
		f := strings.Fields(line)
		if len(f) > 3 && f[2] == fmt.Sprintf("0100007F:%04X", port) && f[3] == "01" {
			n++
		}
	}
	return n
}

// A link is cut only if no connection bypasses its proxies. Without introduction, the
// connections of the election ports would.
func TestAllConnectionsBetweenServersPassThroughProxies(t *testing.T) {
	t.Parallel()
	long.Test(t, "all tests with three servers use what it tests")
	Require(t)
	e := Start(t, Config{Servers: 3})
	check := func() (problem string) {
		for _, to := range e.servers {
			quorum, election := 0, 0
			for _, from := range e.servers {
				if from != to {
					k := e.links.between(from, to)
					quorum += k.quorum.Conns()
					election += k.election.Conns()
				}
			}
			if n := established(t, to.ports.quorum); n != quorum {
				return fmt.Sprintf("%v has %d quorum connections, %d of them through proxies", to, n, quorum)
			}
			if n := established(t, to.ports.election); n != election {
				return fmt.Sprintf("%v has %d election connections, %d of them through proxies", to, n, election)
			}
		}
		return ""
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	// The server with the smallest id dials all others when it starts. Each of them
	// closes that connection and dials back.
	s := e.Server(0)
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	for problem := check(); problem != ""; problem = check() {
		select {
		case <-tick.C: // a connection may just be opened or closed
		case <-deadline:
			t.Fatal(problem)
		}
	}
}
