package memdriver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Driver is the driver for mem:// URLs. Importing the package registers it.
type Driver struct{}

var _ driver.Driver = Driver{}

func init() { zklock.Register("mem", Driver{}) }

// OpenConnector implements [driver.Driver]. The one host that a URL may have is
// the name of a shared ensemble; without it the connector gets an ensemble of
// its own, which ends with it and with the sessions it has opened.
func (Driver) OpenConnector(u driver.URL) (driver.Connector, error) {
	if len(u.Hosts) > 1 {
		return nil, fmt.Errorf("mem: %d hosts given; a mem:// URL has one, the name of a shared ensemble, or none", len(u.Hosts))
	}
	if len(u.Params) > 0 {
		return nil, fmt.Errorf("mem: unknown key %q; the driver has none of its own", slices.Sorted(maps.Keys(u.Params))[0])
	}
	c := new(connector)
	if u.User != "" || !u.Password.IsZero() {
		c.ids = []identity{digestIdentity(u.User, u.Password.Reveal())}
	}
	if len(u.Hosts) == 0 || u.Hosts[0] == "" {
		c.e, c.own = New(), true
	} else {
		name := u.Hosts[0]
		if strings.ContainsAny(name, ":[]") {
			return nil, fmt.Errorf("mem: host %q: the name of a shared ensemble has no port and is no address", name)
		}
		c.e = Named(name)
	}
	c.route = c.e.servers
	return c, nil
}

// Keys implements [driver.Driver]: there are no settings in URLs.
func (Driver) Keys() []string { return nil }

var (
	sharedMu sync.Mutex
	shared   = make(map[string]*Ensemble) // guarded by sharedMu
)

// Named returns the ensemble that the process shares under a name: what
// mem://name connects to. It is made when it is first asked for, with the
// default options, and lives until it is closed.
func Named(name string) *Ensemble {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	e := shared[name]
	if e == nil {
		e = New()
		e.name = name
		shared[name] = e
	}
	return e
}

// forget makes room for a new shared ensemble of the same name.
func forget(e *Ensemble) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared[e.name] == e {
		delete(shared, e.name)
	}
}
