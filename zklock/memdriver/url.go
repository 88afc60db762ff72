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

// urlDriver is the driver for mem:// URLs. Importing the package registers it.
type urlDriver struct{}

var _ driver.Driver = urlDriver{}

func init() { zklock.Register("mem", urlDriver{}) }

// OpenConnector implements [driver.Driver]. A URL has at most one host, the name of a
// shared ensemble. Without a host, the connector gets a private ensemble, which ends
// when the connector and all sessions that it has opened are closed.
func (urlDriver) OpenConnector(u driver.URL) (driver.Connector, error) {
	if len(u.Hosts) > 1 {
		return nil, fmt.Errorf("mem: the URL has %d hosts: give one, the name of a shared ensemble, or none", len(u.Hosts))
	}
	if len(u.Params) > 0 {
		return nil, fmt.Errorf("mem: unknown key %q: the mem driver has no keys, leave it out", slices.Sorted(maps.Keys(u.Params))[0])
	}
	if len(u.Options) > 0 {
		return nil, fmt.Errorf("mem: an option of type %T is not for this driver", u.Options[0])
	}
	c := new(connector)
	if u.User != "" || !u.Password.IsZero() {
		id, err := digestIdentity(u.User, u.Password.Reveal())
		if err != nil {
			return nil, err
		}
		c.ids = []identity{id}
	}
	if len(u.Hosts) == 0 || u.Hosts[0] == "" {
		c.e, c.own = New(), true
	} else {
		name := u.Hosts[0]
		if strings.ContainsAny(name, ":[]") {
			return nil, fmt.Errorf("mem: host %q: it must be the name of a shared ensemble, not an address, and without a port", name)
		}
		c.e = Named(name)
	}
	c.route = c.e.servers
	return c, nil
}

// Keys implements [driver.Driver]. URLs have no settings of this driver.
func (urlDriver) Keys() []string { return nil }

var (
	sharedMu sync.Mutex
	shared   = make(map[string]*Ensemble) // guarded by sharedMu
)

// Named returns the ensemble that the process shares under a name; mem://name connects to it.
// The first call makes it, with the default options, and it lives until it is closed.
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

// forget removes a closed ensemble from the shared ones, so that its name can be used
// again.
func forget(e *Ensemble) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared[e.name] == e {
		delete(shared, e.name)
	}
}
