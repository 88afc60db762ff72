package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/internal/netcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Mechanism is a SASL mechanism with the credentials of one identity. Its methods may be called
// concurrently.
type Mechanism interface {
	// Name returns the mechanism's registered name, such as GSSAPI, for error texts: it is not
	// sent.
	Name() string

	// Start prepares the authentication of one connection to host, the name or address in the
	// URL, without a port. It is called before host is dialled: while the exchange is under way,
	// nothing keeps the session alive. So a mechanism fetches its tickets here, and returns
	// early when ctx ends.
	//
	// The driver also calls Start from time to time for each server of the URL, and drops the
	// Exchange. So the tickets for a server are there when the session has to move to it.
	//
	// If another attempt cannot succeed until the credentials are changed, the error matches
	// driver.ErrAuthFailed. No error holds a secret.
	Start(ctx context.Context, host string) (Exchange, error)
}

// Exchange is the authentication of one connection. One goroutine uses it.
type Exchange interface {
	// Step returns the response to a challenge of the server. Step(nil) begins; a later
	// challenge is never nil.
	//
	// If done is false, the response is sent, even if it is empty, and the server has to answer
	// with a challenge. If done is true and the response is not nil, it is sent, and the server
	// has to confirm success. If done is true and the response is nil, the server has
	// authenticated the client already, and nothing is sent.
	//
	// An error ends the connection. It says what the server did wrong, or what it expects.
	Step(challenge []byte) (response []byte, done bool, err error)
}

// WithSASL authenticates each connection of a client by a SASL mechanism, before any request.
// The URL's user, if it has one, is presented by the scheme digest in addition. WithSASL has
// no effect on a client that a connector opens.
func WithSASL(m Mechanism) zklock.Option { return zklock.WithDriverOption(m) }

// keySASL is the URL's key for a mechanism.
const keySASL = "sasl"

// saslDigestMD5 is the value of the key for the mechanism of this package.
const saslDigestMD5 = "digest-md5"

// saslKerberos is the value of the key for contrib/kerberos, which registers it.
const saslKerberos = "kerberos"

var (
	mechanismsMu sync.Mutex
	mechanisms   = make(map[string]func(driver.URL) (Mechanism, error)) // guarded by mechanismsMu
)

// RegisterSASL makes a mechanism available as a value of the URL's key sasl. Packages of
// mechanisms call it from an init function. open makes the mechanism from the URL, whose user
// is the mechanism's. RegisterSASL panics if the name is registered already, or if open is nil.
func RegisterSASL(name string, open func(driver.URL) (Mechanism, error)) {
	mechanismsMu.Lock()
	defer mechanismsMu.Unlock()
	if open == nil {
		panic("zkdriver: RegisterSASL was called with a nil function")
	}
	if _, taken := mechanisms[name]; taken || name == saslDigestMD5 {
		panic(fmt.Sprintf("zkdriver: RegisterSASL was called twice for %q", name))
	}
	mechanisms[name] = open
}

// sasl is how a connector authenticates its connections.
type sasl struct {
	Mechanism
	inURL   bool // the mechanism is that of the URL's key, and the URL's user belongs to it
	tickets bool // Start may ask another server, so it is called early: see connector.keepTickets
}

// parseSASL returns the mechanism of the URL's key or of WithSASL; nil if there is none.
func parseSASL(u driver.URL) (*sasl, error) {
	var given *sasl
	for _, o := range u.Options {
		if _, ok := o.(netcontrol.Network); ok {
			continue
		}
		m, ok := o.(Mechanism)
		if !ok {
			return nil, fmt.Errorf("zkdriver: an option of type %T is not for this driver", o)
		}
		given = &sasl{Mechanism: m, tickets: true}
	}
	name := u.Params.Get(keySASL)
	switch {
	case name == "":
		return given, nil
	case given != nil:
		return nil, fmt.Errorf("zkdriver: key %q and WithSASL both choose a SASL mechanism: use one of them", keySASL)
	case name == saslDigestMD5:
		m, err := newDigestMD5(u)
		if err != nil {
			return nil, err
		}
		return &sasl{Mechanism: m, inURL: true}, nil
	}
	mechanismsMu.Lock()
	open, ok := mechanisms[name]
	known := append([]string{saslDigestMD5}, slices.Sorted(maps.Keys(mechanisms))...)
	mechanismsMu.Unlock()
	if !ok {
		text := fmt.Sprintf("zkdriver: key %q: the mechanism is not known%s (known: %s)", keySASL, nearest.Hint(name, append(known, saslKerberos)), strings.Join(known, ", "))
		if !slices.Contains(known, saslKerberos) {
			text += ": kerberos needs the import of github.com/zklock/go-zklock/contrib/kerberos, or the command built from cmd/zklock/zklock-kerberos"
		}
		return nil, errors.New(text)
	}
	m, err := open(u)
	if err != nil {
		return nil, fmt.Errorf("zkdriver: key %q: %w", keySASL, err)
	}
	return &sasl{Mechanism: m, inURL: true, tickets: true}, nil
}

// renewEvery is the time between two calls of Start for each server.
const renewEvery = 10 * time.Second

// beginTickets starts keepTickets, once, if the mechanism has tickets.
func (c *connector) beginTickets() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config.sasl != nil && c.config.sasl.tickets && !c.closed && !c.renews {
		c.renews = true
		c.wg.Go(c.keepTickets)
	}
}

// keepTickets makes the mechanism fetch and renew the tickets for all servers. When a session has to
// move to another server, the server that grants tickets may be down.
func (c *connector) keepTickets() {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		for _, server := range c.config.servers {
			_, _ = c.config.sasl.start(c.life, server) // the connection that needs the ticket reports an error
		}
		select {
		case <-ticker.C:
		case <-c.life.Done():
			return
		}
	}
}
