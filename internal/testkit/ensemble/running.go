package ensemble

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// ServersEnv is the environment variable that names running servers of one ensemble,
// host:port,host:port. Tests that disturb no server use these instead of starting one.
// The servers need the settings of [New] without options: tickTime=500, and 4lw commands
// that are allowed.
const ServersEnv = "ZKLOCK_TEST_SERVERS"

// Running returns the ensemble that [ServersEnv] names; nil if it is not set. The caller may
// use the addresses of its servers and ask them for their status. The servers are not
// stopped, started or cut off: Close does nothing to them.
func Running() (*Ensemble, error) {
	hosts := os.Getenv(ServersEnv)
	if hosts == "" {
		return nil, nil
	}
	e := &Ensemble{config: Config{}.withDefaults()}
	for i, addr := range strings.Split(hosts, ",") {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%s has %q: want host:port,host:port", ServersEnv, addr)
		}
		e.servers = append(e.servers, &Server{ensemble: e, index: i, given: addr})
	}
	return e, nil
}
