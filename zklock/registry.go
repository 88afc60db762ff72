package zklock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/zklock/driver"
)

var (
	driversMu sync.RWMutex
	drivers   = make(map[string]driver.Driver) // guarded by driversMu
)

// Register makes a driver available under a URL scheme. Driver packages call it from an
// init function, and programs choose a driver by a blank import of its package. Register
// panics if the scheme is empty or already registered, or if the driver is nil, because
// these are mistakes in the program and not in its configuration.
func Register(scheme string, d driver.Driver) {
	driversMu.Lock()
	defer driversMu.Unlock()
	if scheme == "" || d == nil {
		panic("zklock: Register was called with an empty scheme or a nil driver")
	}
	if _, taken := drivers[scheme]; taken {
		panic(fmt.Sprintf("zklock: Register was called twice for scheme %q", scheme))
	}
	drivers[scheme] = d
}

// Drivers returns the registered schemes, sorted.
func Drivers() []string {
	driversMu.RLock()
	defer driversMu.RUnlock()
	return slices.Sorted(maps.Keys(drivers))
}

// lookupDriver returns the driver for a scheme, or an error with the registered schemes
// and a hint at a missing import. A text that is not a scheme may have a password in it, and no error
// shows it.
func lookupDriver(scheme string) (driver.Driver, error) {
	driversMu.RLock()
	d, ok := drivers[scheme]
	driversMu.RUnlock()
	if ok {
		return d, nil
	}
	switch known := Drivers(); {
	case strings.Contains(scheme, "://"):
		return nil, errSchemeIsURL
	case !schemeForm.MatchString(scheme):
		return nil, errScheme
	default:
		return nil, fmt.Errorf("unknown scheme %q%s (registered: %s): import a driver package, such as github.com/zklock/go-zklock/zklock/zkdriver for zk:// and zks://",
			scheme, nearest.Hint(scheme, known), cmp.Or(strings.Join(known, ", "), "none"))
	}
}

var (
	errSchemeIsURL = errors.New("the Scheme of the Config is a URL: pass that to ParseURL or Open, or set Scheme to zk, zks or mem alone")
	errScheme      = errors.New("the Scheme of the Config has a character other than a-z, 0-9, +, - and dot: set it to zk, zks or mem")
)
