package memdriver

import (
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Ensemble is a ZooKeeper ensemble in memory. Make one with [New] or [Named]. All its
// methods are safe for concurrent use. Servers are numbered from 0.
type Ensemble struct {
	config config

	// mu guards the whole ensemble: its servers, connections and sessions. It is held
	// while events run, and never while a goroutine waits: a goroutine blocked on a
	// mutex would keep a synctest bubble's time from passing.
	mu      sync.Mutex
	clock   clock
	start   time.Time
	servers []*server
	clients map[*session]struct{} // clients whose session has not ended; it may not be established yet
	// sessions finds the client of a session.
	sessions map[int64]*session
	conns    map[*conn]struct{} // connections with at least one open end
	made     uint64             // number of connections made so far
	ports    int                // calls of Open that have not ended; see controls.Open
	links    []*learner         // links with at least one open end
	cuts     []Cut
	epoch    int64
	lastID   uint64
	turn     int
	solo     bool // there is one server, which applies at once: a call has its effect before it returns
	ops      ops
	recorded int64 // the newest transaction that the journal has received
	closed   bool
	// private is set when the connector of a private ensemble is closed: then the
	// ensemble is closed together with its last client.
	private bool
	name    string // the name of a shared ensemble
}

// New makes an ensemble. It starts no goroutine. While no session is open, the
// ensemble does nothing.
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
			e: e, index: i, tree: newTree(), disk: disk{e: e},
			conns:    make(map[*conn]struct{}),
			sessions: make(map[int64]*conn),
			watches:  make(map[watched][]*conn),
			touched:  make(map[int64]time.Duration),
		})
	}
	e.servers[0].lead()
	for _, s := range e.servers[1:] {
		s.follow(e.servers[0].leader)
	}
	return e
}

// Close ends the ensemble. It closes the sessions that are still open. When it has returned,
// nothing of the ensemble runs. It always returns nil. After a shared ensemble is closed,
// [Named] makes a new one under its name.
func (e *Ensemble) Close() error {
	e.enter()
	quiet := e.shut()
	e.leave()
	if quiet != nil {
		<-quiet
	}
	return nil
}

// shut does the work of Close except the waiting.
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

// retire is called after a client has ended. It stops the periodic work if there is no client left,
// and closes the ensemble if no connector can reach it any longer.
func (e *Ensemble) retire() {
	e.rest()
	if e.private && !e.closed && len(e.clients) == 0 {
		e.shut()
	}
}

// majority reports whether n servers are a majority.
func (e *Ensemble) majority(n int) bool { return n > len(e.servers)/2 }

// newID makes a session id that no other session of the ensemble has, in the way of
// real servers: the server's number, from 1, is in the first byte, followed by the
// time when the server started and a counter.
func (e *Ensemble) newID(s *server) int64 {
	e.lastID++
	return int64(s.index+1)<<56 | int64(e.lastID)
}

// expiry returns when a session expires if the leader has heard from it now. As in ZooKeeper's
// expiry queue, it is rounded up to a whole tick, and is never the present tick.
func (e *Ensemble) expiry(timeout time.Duration) time.Duration {
	tick := e.config.tick
	return ((e.clock.now.Sub(e.start)+timeout)/tick + 1) * tick
}
