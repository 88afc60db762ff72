package locktest_test

import (
	"cmp"
	"encoding/json"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// The toy is a lock library with a server of its own. A session lives until the server has heard nothing
// of it for the TTL. The client counts that time from when it sent the newest request that was
// answered, so it gives up a session before the server does, however late messages are.

// toyRequest is what a client sends.
type toyRequest struct {
	Session, Name string
	ID            int
	Op            string // open, ping, lock, unlock
	Holding       []int  // lock: the ids of the locks that its client holds
	Victims       int    // lock: how many waits of a circle that it closes fail
	Shared        bool   // lock: others may have it shared, too
	Permits       int    // lock: so many may have it; 0: one
}

// toyReply is what a server sends.
type toyReply struct {
	Session string
	ID      int
	Op      string // ok, granted, gone, deadlock
	Token   int64
}

type toyServer struct {
	ttl   time.Duration
	quiet time.Time // no lock is granted before: the leases of a server before this one run out

	mu       sync.Mutex
	token    int64
	sessions map[string]*toySession
	queues   map[string][]*toyEntry
}

type toySession struct {
	until time.Time
	out   *json.Encoder // of the newest connection
}

type toyEntry struct {
	toyRequest
	token int64 // 0: it waits
}

// serveToy serves at addr until the process is killed. The file marks that a server ran before.
func serveToy(addr, file string, ttl time.Duration) error {
	s := &toyServer{ttl: ttl, token: time.Now().UnixMicro(), sessions: make(map[string]*toySession), queues: make(map[string][]*toyEntry)}
	if _, err := os.Stat(file); err == nil {
		s.quiet = time.Now().Add(ttl)
	}
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for range time.Tick(ttl / 20) {
			s.expire()
		}
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

func (s *toyServer) serve(c net.Conn) {
	defer c.Close()
	in, out := json.NewDecoder(c), json.NewEncoder(c)
	for {
		var r toyRequest
		if in.Decode(&r) != nil {
			return
		}
		s.mu.Lock()
		s.handle(r, out)
		s.grant()
		s.mu.Unlock()
	}
}

// handle does one request. Its caller holds mu. A reply that is lost is asked for again.
func (s *toyServer) handle(r toyRequest, out *json.Encoder) {
	x := s.sessions[r.Session]
	if x == nil && r.Op != "open" {
		_ = out.Encode(toyReply{Session: r.Session, ID: r.ID, Op: "gone"})
		return
	}
	if x == nil {
		x = new(toySession)
		s.sessions[r.Session] = x
	}
	x.until, x.out = time.Now().Add(s.ttl), out
	answer := toyReply{Session: r.Session, ID: r.ID, Op: "ok"}
	queue := s.queues[r.Name]
	at := -1
	for i, e := range queue {
		if e.Session == r.Session && e.ID == r.ID {
			at = i
		}
	}
	switch {
	case r.Op == "lock" && at < 0:
		e := &toyEntry{toyRequest: r}
		s.queues[r.Name] = append(queue, e)
		circle := s.circle(e)
		for _, v := range circle[:min(len(circle), r.Victims)] {
			s.queues[v.Name] = slices.DeleteFunc(s.queues[v.Name], func(o *toyEntry) bool { return o == v })
			_ = s.sessions[v.Session].out.Encode(toyReply{Session: v.Session, ID: v.ID, Op: "deadlock"})
		}
		return
	case r.Op == "lock" && queue[at].token == 0:
		return
	case r.Op == "lock":
		answer.Op, answer.Token = "granted", queue[at].token
	case r.Op == "unlock" && at >= 0:
		s.queues[r.Name] = append(queue[:at:at], queue[at+1:]...)
	}
	_ = out.Encode(answer)
}

// circle returns the circle of waits that an entry has closed, from that entry on. Its caller holds mu.
func (s *toyServer) circle(e *toyEntry) (found []*toyEntry) {
	for at := e; at != nil && len(found) < len(s.sessions); {
		found = append(found, at)
		if at = s.waitOf(s.queues[at.Name][0]); at == e {
			return found
		}
	}
	return nil
}

// waitOf returns what the client of an entry waits for. Its caller holds mu.
func (s *toyServer) waitOf(held *toyEntry) *toyEntry {
	for _, queue := range s.queues {
		for _, e := range queue {
			if e.Session == held.Session && e.token == 0 && slices.Contains(e.Holding, held.ID) {
				return e
			}
		}
	}
	return nil
}

// grant grants each lock to the head of its queue, and to those behind it that may share it. Its caller holds mu.
func (s *toyServer) grant() {
	if time.Now().Before(s.quiet) {
		return
	}
	for _, queue := range s.queues {
		for i, e := range queue {
			if i > 0 && i >= e.Permits && !(e.Shared && queue[i-1].Shared) {
				break
			}
			if e.token != 0 {
				continue
			}
			s.token++
			e.token = s.token
			_ = s.sessions[e.Session].out.Encode(toyReply{Session: e.Session, ID: e.ID, Op: "granted", Token: s.token})
		}
	}
}

// expire ends the sessions whose time is over, and what they have in queues.
func (s *toyServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.sessions {
		if time.Now().Before(x.until) {
			continue
		}
		delete(s.sessions, id)
		for name, queue := range s.queues {
			var left []*toyEntry
			for _, e := range queue {
				if e.Session != id {
					left = append(left, e)
				}
			}
			s.queues[name] = left
		}
	}
	s.grant()
}

// runToyServer is the process of a toy server.
func runToyServer() error {
	ttl, err := time.ParseDuration(os.Getenv("LOCKTEST_TTL"))
	return cmp.Or(err, serveToy(os.Args[1], os.Args[2], ttl))
}
