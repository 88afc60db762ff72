package memdriver

import (
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Ensemble is a ZooKeeper ensemble in memory. Make one with [New] or [Named];
// all its methods are safe for concurrent use. Servers are numbered from 0.
type Ensemble struct {
	config config

	// mu guards everything there is to the ensemble, its servers, connections
	// and sessions. It is held for as long as things happen and never while
	// anybody waits: a goroutine blocked on a mutex would keep a synctest
	// bubble's time from passing.
	mu      sync.Mutex
	clock   clock
	start   time.Time
	servers []*server
	clients map[*session]struct{} // not ended, established or not
	// sessions finds the client of a session.
	sessions map[int64]*session
	conns    map[*conn]struct{} // with an end that is open
	made     uint64             // connections so far
	links    []*learner         // with an end that is open
	cuts     []Cut
	epoch    int64
	lastID   uint64
	turn     int
	solo     bool // one server that applies at once: a call is over when it returns
	ops      Ops
	recorded int64 // newest transaction that the journal has seen
	closed   bool
	// private is set once the connector of an ensemble of its own is closed:
	// the ensemble is closed with the last client.
	private bool
	name    string // among the shared ones
}

// New makes an ensemble. It starts no goroutine; while no session is open it
// does nothing at all.
func New(opts ...Option) *Ensemble {
	e := &Ensemble{
		config: config{
			servers:      1,
			tick:         defaultTickTime,
			syncLimit:    defaultSyncLimit,
			reapInterval: defaultReapInterval,
		},
		clients:  make(map[*session]struct{}),
		sessions: make(map[int64]*session),
		conns:    make(map[*conn]struct{}),
	}
	for _, opt := range opts {
		opt.apply(&e.config)
	}
	e.enter()
	defer e.leave()
	e.start = e.clock.now
	e.lastID = uint64(e.start.UnixMilli()) << 24 >> 8
	e.solo = e.config.servers == 1
	for i := range e.config.servers {
		e.servers = append(e.servers, &server{
			e: e, index: i, tree: newTree(),
			conns:    make(map[*conn]struct{}),
			sessions: make(map[int64]*conn),
			watches:  make(map[string][]*conn),
			touched:  make(map[int64]time.Duration),
		})
	}
	e.servers[0].lead()
	for _, s := range e.servers[1:] {
		s.follow(e.servers[0].leader)
	}
	return e
}

// Close ends the ensemble: sessions that are still open are closed, and when it
// returns nothing of the ensemble runs any more. It always returns nil. A
// closed shared ensemble makes room for a new one of its name.
func (e *Ensemble) Close() error {
	e.enter()
	quiet := e.shut()
	e.leave()
	if quiet != nil {
		<-quiet
	}
	return nil
}

// shut does the work of Close but for the waiting.
func (e *Ensemble) shut() <-chan struct{} {
	if !e.closed {
		e.closed = true
		for s := range e.clients {
			if !s.state.Final() {
				s.state = driver.Closed
			}
			s.end(nil, driver.ErrClosed)
		}
		for _, s := range e.servers {
			s.leaveRole()
			s.dropClients()
		}
		e.drain()
		forget(e)
	}
	return e.stop()
}

// retire follows the end of a client: nothing goes on for nobody, and an
// ensemble that nobody can reach any more is closed.
func (e *Ensemble) retire() {
	e.rest()
	if e.private && !e.closed && len(e.clients) == 0 {
		e.shut()
	}
}

// majority reports whether n servers are one.
func (e *Ensemble) majority(n int) bool { return n > len(e.servers)/2 }

// newID makes a session id that no other session of the ensemble has, the way
// servers do: their own number, from 1, in the first byte, then the time when
// they started, and a counter.
func (e *Ensemble) newID(s *server) int64 {
	e.lastID++
	return int64(s.index+1)<<56 | int64(e.lastID)
}

// expiry is when a session that is heard now expires. As in ZooKeeper's queue
// of expiries it is rounded up to a whole tick, and never to this very one.
func (e *Ensemble) expiry(timeout time.Duration) time.Duration {
	tick := e.config.tick
	return ((e.clock.now.Sub(e.start)+timeout)/tick + 1) * tick
}
