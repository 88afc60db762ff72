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
	errNoRoute     = fmt.Errorf("no connection for %v: the process hangs and its queue of connections is full, the host is down, or the network drops or refuses packets", dialLimit)
	errNotServing  = errors.New("it runs, and is in no quorum")
	errWaits       = fmt.Errorf("it answers, and opened no session within %v: it waits for its leader or its disk", serverLimit)
	errLeads       = fmt.Errorf("it leads, and opened no session within %v: its disk hangs, or it has lost what its followers have acknowledged", serverLimit)
	errFewFollow   = fmt.Errorf("it leads, and opened no session within %v: too few of the other servers answer for a quorum", serverLimit)
	errHangs       = fmt.Errorf("it accepts connections and answers nothing for %v: it hangs, or it is not a ZooKeeper server", serverLimit)
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

// why returns why a server gives out no session; "" if it does. The driver's error names the server, as the caller does.
func (s server) why() string {
	if s.err == nil {
		return ""
	}
	return strings.TrimPrefix(s.err.Error(), "zkdriver: no session could be opened: "+address(s.host)+": ")
}

// allOf says that the servers that match give out no session.
func allOf(servers []server, match func(server) bool) string {
	var hosts []string
	for _, s := range servers {
		if match(s) {
			hosts = append(hosts, s.host)
		}
	}
	last := len(hosts) - 1
	if last == 0 {
		return hosts[0] + " gives out no session"
	}
	return strings.Join(hosts[:last], ", ") + " and " + hosts[last] + " give out no session"
}

// adviceOn returns what to do about a server that gives out no session.
func adviceOn(p Patient, s server) string {
	switch {
	case s.err == nil:
		return ""
	case errors.Is(s.err, driver.ErrAuthFailed) && p.URL.Params.Has("sasl"):
		return "make sasl and the identity in the URL fit the server's settings, as the text says"
	case errors.Is(s.err, driver.ErrAuthFailed):
		return authenticate(p.URL)
	case s.misfits():
		return adviceOnMisfit(s.err)
	case errors.Is(s.err, errNotServing):
		return fmt.Sprintf("look at the log and the disk of %s, which may be full, and at the other servers: it has to reach more than half of them", s.host)
	case errors.Is(s.err, errLeads):
		return fmt.Sprintf("look at the log and the disk of %s, and restart it: it leads, and commits nothing", s.host)
	case errors.Is(s.err, errFewFollow):
		return fmt.Sprintf("look at the servers that follow %s", s.host)
	case errors.Is(s.err, errWaits):
		return fmt.Sprintf("look at the leader, and at the log and the disk of %s", s.host)
	case errors.Is(s.err, errHangs):
		return fmt.Sprintf("look at the process, the disk and the log of %s, and restart it, or correct the URL", s.host)
	case errors.Is(s.err, errNoRoute):
		return fmt.Sprintf("look at the process, the host and the network of %s, or correct the URL", s.host)
	case errors.Is(s.err, errUnknownHost):
		return fmt.Sprintf("correct the host %s in the URL, or the name service", s.host)
	case errors.Is(s.err, errRefused):
		return fmt.Sprintf("start the server %s, or correct the URL; if it has ended by itself, its log says why, such as a full disk", s.host)
	case strings.Contains(s.err.Error(), "SASL"):
		return "do what the text says about SASL, such as making a KDC reachable, or look at the logs of the servers"
	}
	return fmt.Sprintf("look at the log of %s: it runs, and gives out no session", s.host)
}

// isDown reports whether a server gives out no session for a reason that is known, and that a
// further try would meet again.
func (s server) isDown() bool {
	return slices.ContainsFunc([]error{errRefused, errNoRoute, errNotServing, errWaits, errLeads, errFewFollow, errHangs, errUnknownHost}, func(why error) bool { return errors.Is(s.err, why) })
}

// waits reports whether a server gives out no session for a reason that another server may have.
func (s server) waits() bool {
	return errors.Is(s.err, errNotServing) || errors.Is(s.err, errWaits) || errors.Is(s.err, errFewFollow)
}

// acquit finds that a leader that commits nothing has too few followers, if so many other servers are down.
func acquit(servers []server) {
	down := 0
	for _, s := range servers {
		if s.isDown() && !s.waits() && !errors.Is(s.err, errLeads) {
			down++
		}
	}
	for i, s := range servers {
		if errors.Is(s.err, errLeads) && 2*down >= len(servers) {
			servers[i].err = errFewFollow
		}
	}
}

// misfits reports whether a server gives out no session because the URL does not fit it.
func (s server) misfits() bool {
	return errors.Is(s.err, driver.ErrTLS) || errors.Is(s.err, driver.ErrProtocol)
}

const (
	// adviceTLS is for a scheme, a port or a certificate that does not fit.
	adviceTLS = "change the URL or the servers as the text says; docs/secured.md has a table of these errors"

	// adviceKeeper is for servers that speak the protocol, and do not keep what locks need.
	adviceKeeper = "give the URL the servers of a ZooKeeper: zklock refuses ClickHouse Keeper by default; docs/urls.md says at allow_keeper what its use costs"
)

// adviceOnMisfit returns what to do about servers that the URL does not fit, by the driver's error, which names Keeper.
func adviceOnMisfit(err error) string {
	if strings.Contains(err.Error(), "ClickHouse Keeper") {
		return adviceKeeper
	}
	return adviceTLS
}

// authenticate returns what to do about servers that refuse the identity of a URL, or demand one.
func authenticate(u driver.URL) string {
	switch {
	case u.User != "":
		return "correct the user and the password"
	case u.Params.Has("tls_cert"):
		return "use a certificate in tls_cert and tls_key that the servers accept, or authenticate as they demand, as the text says"
	}
	return "authenticate as the servers demand: for SASL, set sasl=digest-md5 and a user, or sasl=kerberos, in the URL of all clients"
}

// another returns how a client of a URL gets another identity. It has no user to set if another key of the URL has the
// identity.
func another(u driver.URL) string {
	switch {
	case u.Params.Has("sasl"):
		return "use another identity for sasl in the URL"
	case u.User != "":
		return "set another user in the URL"
	case u.Params.Has("tls_cert"):
		return "use another certificate in tls_cert and tls_key"
	}
	return "set the user in the URL"
}
