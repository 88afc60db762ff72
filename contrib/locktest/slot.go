package locktest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// startLimit is how long a worker may take until it is ready.
const startLimit = time.Minute

// slot runs one worker: a process, and after its end the next one. All have the same link to the
// servers. Its methods are safe for concurrent use.
type slot struct {
	run     *run
	command []string     // of the slot's processes
	link    *fault.Link  // nil: Config.Direct
	clock   *fault.Clock // of the slot's processes; nil: no clock jumps

	newest atomic.Int64 // the number of the newest process

	mu      sync.Mutex
	current *process      // nil: none is ready; guarded by mu
	changed chan struct{} // closed and replaced when current or paused changes; guarded by mu
	paused  bool          // no process is started for now; guarded by mu
}

func newSlot(r *run, command []string) (*slot, error) {
	s := &slot{run: r, command: command, changed: make(chan struct{})}
	var err error
	if r.clocks != "" {
		if s.clock, err = fault.NewClock(r.clocks); err != nil {
			return nil, err
		}
	}
	if r.config.Direct {
		return s, nil
	}
	addrs := r.config.Ensemble.Addrs()
	if s.link, err = fault.NewLink(addrs); err != nil {
		return nil, err
	}
	for i := range addrs {
		up, down := r.config.Distance, r.config.Distance
		if r.config.Spread {
			up = farther(up, i-len(r.slots), len(addrs))
			down = up / time.Duration(1+len(r.slots)%2)
		}
		s.link.Distance(i, up, down)
	}
	if logged, ok := r.config.Ensemble.(servers.Logged); ok && len(logged.Logs()) > 0 {
		s.link.OnAnswer(s.noteSession)
	}
	return s, nil
}

// farther returns the distance of the server that is so many servers behind the nearest one: from a quarter to the whole.
func farther(whole time.Duration, behind, servers int) time.Duration {
	behind = (behind%servers + servers) % servers
	return whole/4 + whole*3/4*time.Duration(behind)/time.Duration(max(servers-1, 1))
}

// noteSession notes the session of a connection, from the first bytes of the server's answer: lengths and versions, and
// the id.
func (s *slot) noteSession(answer []byte) {
	const id = 4 + 4 + 4
	if len(answer) < id+8 || answer[0] != 0 {
		return // no server of ZooKeeper sends that in parts, as a rule; an answer to a command is text
	}
	if session := binary.BigEndian.Uint64(answer[id:]); session != 0 {
		s.run.history.Note(history.Event{Kind: history.Session, Worker: int(s.newest.Load()), Reason: fmt.Sprintf("0x%x", session)})
	}
}

// serve starts processes until ctx ends. It returns an error if a process does not get ready, or breaks
// the rules of the protocol.
func (s *slot) serve(ctx context.Context) error {
	c := s.run.config
	for ctx.Err() == nil {
		number := s.run.numbers.next()
		s.newest.Store(int64(number))
		p, err := s.run.start(ctx, number, s.command, s.clock.Env(), s.addrs())
		if err != nil {
			return err
		}
		s.set(func() { s.current = p })
		select {
		case <-p.ended:
		case <-ctx.Done():
		}
		s.set(func() { s.current = nil })
		if err := p.end(max(c.TTL, c.Recover)); err != nil {
			return err
		}
		s.await(ctx, func() bool { return !s.paused })
	}
	return nil
}

// start starts a process of a worker and waits until it is ready, or until ctx ends.
func (r *run) start(ctx context.Context, number int, command, more, addrs []string) (*process, error) {
	p, err := startProcess(r.config, command, more, addrs, number, r.history)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-p.ready:
	case <-p.ended:
		err = errors.New("it has ended before it was ready")
	case <-limit.C:
		err = fmt.Errorf("it was not ready after %v", startLimit)
	case <-ctx.Done():
	}
	if err != nil {
		return nil, cmp.Or(p.end(0), fmt.Errorf("start worker %s: %w", command[0], err))
	}
	return p, nil
}

// set changes the slot and wakes what waits for a change.
func (s *slot) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until a condition is true. The condition is called with mu held. It reports false if ctx ends.
func (s *slot) await(ctx context.Context, condition func() bool) bool {
	for {
		s.mu.Lock()
		ok, changed := condition(), s.changed
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// process waits for a process that is ready. It returns nil if ctx ends.
func (s *slot) process(ctx context.Context) (p *process) {
	s.await(ctx, func() bool { p = s.current; return p != nil })
	return p
}

// addrs are the addresses that the worker uses.
func (s *slot) addrs() []string {
	if s.link == nil {
		return s.run.config.Ensemble.Addrs()
	}
	return s.link.Addrs()
}

// close ends the link.
func (s *slot) close() error {
	if s.link == nil {
		return nil
	}
	return s.link.Close()
}
