package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// server is what is known of one server.
type server struct {
	host     string
	err      error         // why it gives out no session
	took     time.Duration // to open a session
	granted  time.Duration // for the session timeout that clients ask for
	shortest time.Duration // that it grants
	longest  time.Duration // that it grants
	srvr     map[string]string
	conf     map[string]string // of the words conf, or of the AdminServer; empty if neither says it
	version  version
	reads    int // the size of a request that it reads; 0: not known
	cuts     int // the size of a request whose connection it cuts; 0: none that the driver sends
}

// lookAtAll looks at all servers of a URL at the same time.
func lookAtAll(ctx context.Context, p Patient) []server {
	hosts := p.URL.Hosts
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	servers := make([]server, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() { servers[i] = lookAt(ctx, p, host) })
	}
	wg.Wait()
	return servers
}

// lookAt looks at one server.
func lookAt(ctx context.Context, p Patient, host string) server {
	s := server{host: host}
	u := p.URL
	u.Hosts = []string{host}
	silent, err := reachable(ctx, u, host)
	if s.err = err; err != nil {
		return s
	}
	began := time.Now()
	if s.granted, s.err = grant(ctx, p.Driver, u, p.SessionTimeout); s.err != nil {
		s.err = why(ctx, u, host, silent, time.Since(began) >= serverLimit, s.err)
		return s
	}
	s.took = time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, serverLimit) // a server whose session took long answers these questions, too
	defer cancel()
	if text, err := ask(ctx, u, host, "srvr"); err == nil {
		s.srvr = fields(text, ":")
		s.version = parseVersion(s.srvr["zookeeper version"])
	}
	if text, err := ask(ctx, u, host, "conf"); err == nil {
		s.conf = fields(text, "=")
	}
	if len(s.conf) <= 1 { // a refusal, or nothing
		if said := adminConf(ctx, host, adminPort); said != nil {
			s.conf = said
		}
	}
	s.reads, s.cuts = limits(ctx, p.Driver, u, p.MaxBuffer)
	if s.conf["ticktime"] == "" {
		// By default a server grants from two to twenty ticks.
		s.shortest, _ = grant(ctx, p.Driver, u, time.Millisecond)
		s.longest, _ = grant(ctx, p.Driver, u, 24*time.Hour)
	}
	return s
}

// why returns why a server has given out no session, by what it says now: it may have stopped, or lost its leader, since
// it was asked first. Silent means that it did not answer then. Late means that it did not refuse.
func why(ctx context.Context, u driver.URL, host string, silent, late bool, err error) error {
	if silent && late {
		return errHangs
	}
	silent, now := reachable(ctx, u, host)
	switch {
	case now != nil:
		return now
	case !late || strings.Contains(err.Error(), "SASL"):
		return err
	case silent:
		return errHangs
	}
	text, _ := ask(ctx, u, host, "srvr")
	if mode := fields(text, ":")["mode"]; mode == "leader" || mode == "standalone" {
		return errLeads
	}
	return errWaits
}

// grant opens a session with one server, closes it, and returns the session timeout that the
// server has granted.
func grant(ctx context.Context, d driver.Driver, u driver.URL, asked time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	connector, err := d.OpenConnector(u)
	if err != nil {
		return 0, err
	}
	defer connector.Close()
	session, err := connector.Connect(ctx, asked)
	if err != nil {
		return 0, err
	}
	granted := session.Timeout()
	_ = session.Close(ctx) // it has nothing; else it expires
	return granted, nil
}

// tick returns the server's tickTime, and whether that is certain; 0 if it is not known.
func (s *server) tick() (tick time.Duration, certain bool) {
	if ms, ok := s.number("tickTime"); ok {
		return time.Duration(ms) * time.Millisecond, true
	}
	return s.shortest / 2, s.shortest > 0 && s.longest == 10*s.shortest
}

// connections says how many connections the server has, without the one that asked.
func (s *server) connections() string {
	switch n, err := strconv.Atoi(s.srvr["connections"]); {
	case err != nil:
		return ""
	case n == 2:
		return ", 1 connection"
	default:
		return fmt.Sprintf(", %d connections", max(n-1, 0))
	}
}

// number returns a number of the server's configuration.
func (s *server) number(key string) (int, bool) {
	n, err := strconv.Atoi(s.conf[strings.ToLower(key)])
	return n, err == nil
}

// fields parses lines of the form key, separator, value. Keys are in lower case.
func fields(text, separator string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, separator); ok {
			m[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return m
}
