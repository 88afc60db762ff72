package ensemble

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
)

// attempts is how often New tries to start an ensemble if ports collide. Each attempt uses
// other ports.
const attempts = 3

// pollInterval is the time between two checks of a condition that a caller waits for.
const pollInterval = 50 * time.Millisecond

// Ensemble is one or more servers that serve the same data. Its methods are safe for
// concurrent use.
type Ensemble struct {
	config Config
	dir    string
	links  *links

	mu      sync.Mutex
	servers []*Server // guarded by mu; New fills it before other goroutines know of it

	closing sync.Once
	err     error // Close's result; set within closing
}

// Start runs an ensemble until the test and its subtests are over. It fails the test if
// the ensemble does not serve. If the test has failed at its end, it logs the servers'
// last log lines.
func Start(t testing.TB, c Config) *Ensemble {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range e.Servers() {
				t.Logf("the end of %v's log:\n%s", s, s.Log())
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Settings returns those of a test of the ensemble, for the ledger: session is the timeout of the clients' sessions, and name the
// longest of the names.
func (e *Ensemble) Settings(session time.Duration, clients int, name string) *census.Census {
	return census.Of(census.Settings{Tick: e.config.TickTime, Session: session, Servers: len(e.Servers()), Clients: clients, Name: len(name)})
}

// New starts an ensemble and returns when it serves. On an error no server is left
// running. The error ends with the last log lines of the server that failed, or of all
// servers if they did not serve in time.
func New(c Config) (*Ensemble, error) {
	c = c.withDefaults()
	for try := 1; ; try++ {
		e, err := newOnce(c)
		if err == nil {
			return e, nil
		}
		collided := e != nil && e.collided()
		if e != nil {
			err = errors.Join(err, e.Close())
		}
		if !collided || try == attempts {
			return nil, err
		}
	}
}

// newOnce may return an ensemble together with an error: the caller must close it.
func newOnce(c Config) (*Ensemble, error) {
	dir, err := os.MkdirTemp("", "zookeeper-")
	if err != nil {
		return nil, err
	}
	e := &Ensemble{config: c, dir: dir}
	for i := range c.Servers {
		p, err := pickPorts()
		if err != nil {
			return e, err
		}
		if i == 0 && c.Port != 0 {
			if err := p.claim(c.Port); err != nil {
				p.giveBack()
				return e, err
			}
		}
		e.servers = append(e.servers, &Server{
			ensemble: e, index: i, ports: p,
			dir: filepath.Join(dir, fmt.Sprintf("server%d", i+1)),
		})
	}
	if e.links, err = newLinks(e.servers, c.DirectQuorum); err != nil {
		return e, err
	}
	for _, s := range e.Servers() {
		if err := s.writeConfig(); err != nil {
			return e, err
		}
		if err := s.Start(); err != nil {
			return e, err
		}
	}
	return e, e.AwaitServing()
}

// Servers returns all servers, running or not.
func (e *Ensemble) Servers() []*Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.servers)
}

// Server returns the server with that index, counted from 0.
func (e *Ensemble) Server(i int) *Server { return e.Servers()[i] }

// Hosts returns the addresses of all servers for clients, joined by commas.
func (e *Ensemble) Hosts() string { return join(e.Servers(), (*Server).Addr) }

// SecureHosts returns the addresses of all servers for clients that use TLS.
func (e *Ensemble) SecureHosts() string { return join(e.Servers(), (*Server).SecureAddr) }

// URL returns a zk:// URL of all servers with a root ("" or an absolute path) and
// parameters, which may be nil.
func (e *Ensemble) URL(root string, params url.Values) string {
	return URL(e.Hosts(), root, params)
}

// URL returns the zk:// URL of those hosts, for example of proxies in front of an
// ensemble.
func URL(hosts, root string, params url.Values) string {
	u := "zk://" + hosts + root
	if len(params) > 0 {
		u += "?" + params.Encode()
	}
	return u
}

// Close kills the servers, waits for their end, and removes their data.
func (e *Ensemble) Close() error {
	e.closing.Do(func() {
		if e.dir == "" {
			return // Running: not our servers
		}
		var wg sync.WaitGroup
		for _, s := range e.Servers() {
			wg.Go(s.Kill)
		}
		wg.Wait()
		if e.links != nil {
			e.links.close()
		}
		for _, s := range e.Servers() {
			s.ports.giveBack()
		}
		e.err = os.RemoveAll(e.dir)
	})
	return e.err
}

// Leader returns the server that leads. While a deposed leader still reports that it
// leads, Leader returns the one with the higher epoch. With a single server it returns
// that server. It returns an error if no server leads.
func (e *Ensemble) Leader() (*Server, error) {
	var leader *Server
	var zxid int64
	e.ask(func(s *Server, st Status) {
		// As long as the new epoch has no transaction yet, both leaders may report
		// the same zxid. Then the first server in order counts.
		if (st.Role == Leader || st.Role == Standalone) && (leader == nil || st.Zxid > zxid) {
			leader, zxid = s, st.Zxid
		}
	})
	if leader == nil {
		return nil, errors.New("ensemble: no server leads at the moment: see AwaitLeader")
	}
	return leader, nil
}

// Followers returns the servers that are followers at the moment.
func (e *Ensemble) Followers() []*Server {
	var all []*Server
	e.ask(func(s *Server, st Status) {
		if st.Role == Follower {
			all = append(all, s)
		}
	})
	return all
}

// AwaitLeader waits until a server leads that is not in except, and returns it.
func (e *Ensemble) AwaitLeader(except ...*Server) (*Server, error) {
	var leader *Server
	err := e.await("have a leader", func() bool {
		leader = nil
		e.ask(func(s *Server, st Status) {
			for _, x := range except {
				if s == x {
					return
				}
			}
			if st.Role == Leader || st.Role == Standalone {
				leader = s
			}
		})
		return leader != nil
	})
	return leader, err
}

// AwaitServing waits until every running server that is not frozen serves its clients.
func (e *Ensemble) AwaitServing() error {
	var failed error
	err := e.await("serve", func() bool {
		for _, s := range e.Servers() {
			if failed = s.failure(); failed != nil {
				return true
			}
		}
		serving, asked := 0, 0
		for _, s := range e.Servers() {
			if s.Running() && !s.Frozen() {
				asked++
			}
		}
		e.ask(func(_ *Server, st Status) {
			if st.Role != NotServing {
				serving++
			}
		})
		return serving == asked
	})
	if failed != nil {
		return failed
	}
	return err
}

// AwaitServing waits until the server serves its clients.
func (s *Server) AwaitServing() error { return s.AwaitRole(Leader, Follower, Observer, Standalone) }

// AwaitRole waits until the server has one of those roles.
func (s *Server) AwaitRole(roles ...Role) error {
	var failed error
	what := fmt.Sprintf("find %v in one of the roles %q", s, roles)
	err := s.ensemble.await(what, func() bool {
		if failed = s.failure(); failed != nil {
			return true
		}
		role, err := s.Role()
		if err != nil {
			return false
		}
		for _, r := range roles {
			if r == role {
				return true
			}
		}
		return false
	})
	if failed != nil {
		return failed
	}
	return err
}

// failure returns an error if the process of a started server has ended, but not after Kill,
// Stop or Close.
func (s *Server) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.over() || s.proc.ended.Load() {
		return nil
	}
	return fmt.Errorf("ensemble: %v ended by itself: %v\n%s", s, s.proc.err, s.Log())
}

// ask calls answer for every server that runs, is not frozen, and replies to srvr.
func (e *Ensemble) ask(answer func(*Server, Status)) {
	for _, s := range e.Servers() {
		if !s.Running() || s.Frozen() {
			continue
		}
		if st, err := s.Status(); err == nil {
			answer(s, st)
		}
	}
}

// await polls a condition until it holds or StartTimeout has passed.
func (e *Ensemble) await(what string, holds func() bool) error {
	deadline := time.NewTimer(e.config.StartTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-e.config.Stop:
			return fmt.Errorf("ensemble: stopped before it did %s", what)
		default:
		}
		if holds() {
			return nil
		}
		select {
		case <-e.config.Stop:
		case <-tick.C:
		case <-deadline.C:
			var logs strings.Builder
			for _, s := range e.Servers() {
				fmt.Fprintf(&logs, "\nthe end of %v's log:\n%s", s, s.Log())
			}
			return fmt.Errorf("ensemble: did not %s within %v%s", what, e.config.StartTimeout, logs.String())
		}
	}
}

func (e *Ensemble) collided() bool {
	for _, s := range e.Servers() {
		if s.collided() {
			return true
		}
	}
	return false
}

func join(servers []*Server, addr func(*Server) string) string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = addr(s)
	}
	return strings.Join(all, ",")
}
