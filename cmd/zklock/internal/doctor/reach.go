package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// dialLimit bounds how long a connection to a server may take.
const dialLimit = 2 * time.Second

// What keeps a server from giving out sessions.
var (
	errRefused     = errors.New("it refuses connections: no server runs there")
	errNoRoute     = errors.New("no connection: the host is down, or the network drops or refuses packets")
	errNotServing  = errors.New("it runs, and is in no quorum")
	errHangs       = fmt.Errorf("it accepts connections and answers nothing for %v: it hangs", serverLimit)
	errUnknownHost = errors.New("the name of the host is not known")
)

// reachable connects to a server. It returns one of the errors above, or another one, if a session
// would not be given out: a driver would try again until its time is over. silent means that the
// server has not answered srvr, not even that it is not allowed.
func reachable(ctx context.Context, u driver.URL, host string) (silent bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(dialing, "tcp", address(host))
	var unknown *net.DNSError
	switch {
	case err == nil:
		_ = conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return false, errRefused
	case errors.As(err, &unknown):
		return false, fmt.Errorf("%w: %w", errUnknownHost, err)
	case dialing.Err() != nil, errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return false, errNoRoute
	default:
		return false, err
	}
	asking, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	text, err := ask(asking, u, host, "srvr")
	if strings.Contains(text, "not currently serving") {
		return false, errNotServing
	}
	return err != nil && !errors.Is(err, errNotAllowed), nil
}

// adviceOn returns what to do about a server that gives out no session.
func adviceOn(p Patient, s server) string {
	switch {
	case errors.Is(s.err, driver.ErrAuthFailed) && p.URL.Params.Has("sasl"):
		return "make sasl and the identity in the URL fit the server's settings, as the text says"
	case errors.Is(s.err, driver.ErrAuthFailed):
		return "correct the user and the password"
	case errors.Is(s.err, driver.ErrTLS):
		return "correct the scheme, the certificates, or the keys tls_… of the URL"
	case errors.Is(s.err, errNotServing):
		return fmt.Sprintf("look at the log of %s, and at the other servers: it has to reach more than half of them", s.host)
	case errors.Is(s.err, errHangs):
		return fmt.Sprintf("look at the process, the disk and the log of %s, and restart it", s.host)
	case errors.Is(s.err, errNoRoute):
		return fmt.Sprintf("look at the host and the network of %s, or correct the URL", s.host)
	case errors.Is(s.err, errUnknownHost):
		return fmt.Sprintf("correct the host %s in the URL, or the name service", s.host)
	case errors.Is(s.err, errRefused):
		return fmt.Sprintf("start the server %s, or correct the URL", s.host)
	case strings.Contains(s.err.Error(), "SASL"):
		return fmt.Sprintf("do what the text says about SASL, such as making a KDC reachable, or look at the log of %s", s.host)
	}
	return fmt.Sprintf("look at the log of %s: it runs, and gives out no session", s.host)
}

// isDown reports whether a server gives out no session for a reason that is known, and that a
// further try would meet again.
func (s server) isDown() bool {
	return slices.ContainsFunc([]error{errRefused, errNoRoute, errNotServing, errHangs, errUnknownHost}, func(why error) bool { return errors.Is(s.err, why) })
}
