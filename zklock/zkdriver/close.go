package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// closer keeps what the first Close came to.
type closer struct {
	once sync.Once
	done chan struct{} // closed when err is set
	err  error         // set before done is closed, immutable after
}

func (c *closer) init() { c.done = make(chan struct{}) }

// Close implements driver.Session. Requests in flight get their outcome first,
// if it comes in time; those that wait are refused at once.
func (s *session) Close(ctx context.Context) error {
	s.close.once.Do(func() {
		s.beginClose()
		err := s.closeSession(ctx)
		if err != nil {
			err = fmt.Errorf("zkdriver: close session %#x: not confirmed by the ensemble, ephemeral znodes stay until it expires: %w", s.ID(), err)
		}
		s.end()
		<-s.stopped
		s.close.err = err
		close(s.close.done)
	})
	return s.close.err
}

// beginClose makes the session refuse requests.
func (s *session) beginClose() {
	s.mu.Lock()
	s.closing = true
	if !s.expired {
		close(s.over)
	}
	s.setLocked(driver.Closed, s.generation)
	s.mu.Unlock()
	s.watches.end(driver.ErrClosed)
}

// closeSession asks the ensemble to end the session and waits until it has, at
// most until ctx ends. That a session timeout has passed says nothing: servers
// without a leader expire no sessions.
func (s *session) closeSession(ctx context.Context) error {
	s.mu.Lock()
	none := s.id == 0
	s.mu.Unlock()
	if none {
		return nil
	}
	// Outcomes of requests in flight come before that of the close anyway, and
	// a client that is closed drops them.
	select {
	case <-s.idling():
	case <-s.life.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	asked := false
	for {
		s.mu.Lock()
		expired, up, moved := s.expired, s.up, s.moved
		s.mu.Unlock()
		switch {
		case expired:
			return nil
		case up && !asked:
			asked = true
			s.quitClient()
		case !up && asked:
			select {
			case <-s.confirmed:
				return nil
			default:
				return errors.New("connection lost after the request was sent")
			}
		}
		select {
		case <-s.confirmed:
			return nil
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// confirmClose takes in that the server has ended the session.
func (s *session) confirmClose() { close(s.confirmed) }

// quitClient closes the client, once. The call sends a request if there is a
// connection, and may block for a second.
func (s *session) quitClient() {
	s.quit.Do(func() {
		close(s.quitting)
		s.quitted.Go(s.zk.Close)
	})
}

// callback implements zk.EventCallback.
func (s *session) callback(ev zk.Event) {
	if ev.Type != zk.EventSession {
		s.watches.callback(ev)
		return
	}
	if ev.State != zk.StateDisconnected || s.life.Err() == nil {
		return
	}
	// The client's loop is about to end. Its Close wakes it first and puts its
	// request into the queue then: one that comes when the loop is gone is
	// waited for in vain, for a second. The loop can be a little slower.
	select {
	case <-s.quitting:
		t := time.NewTimer(lastCall)
		defer t.Stop()
		<-t.C
	default:
	}
}

// lastCall is how long the client's loop is held up before it ends.
const lastCall = 2 * time.Millisecond

// supervise owns everything of the session that runs: it watches over requests
// while the session lives, and takes everything down when its life ends.
func (s *session) supervise(events <-chan zk.Event) {
	defer close(s.stopped)
	ticker := time.NewTicker(watchdogTick(s.Timeout()))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.watchdog()
		case <-events: // the callback has seen it; the channel must not fill up
		case <-s.life.Done():
			s.tearDown(events)
			return
		}
	}
}

// tearDown ends the client and waits for every goroutine of the session.
func (s *session) tearDown(events <-chan zk.Event) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.kill(errSessionOver)
	}
	// Without connection and life the client answers all it has and pauses. It
	// is closed only then: a container's creation reads its result when the
	// client is closed, even while the reader still writes it, and a client
	// that is closed on its way to the pause takes a second for it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	select {
	case <-s.hosts.parked:
	case <-s.quitting: // it ends by itself
	case <-ctx.Done():
	}
	select {
	case <-s.idling():
	case <-ctx.Done():
	}
	s.quitClient()
	for range events { // closed when the client's loop has ended
	}
	s.quitted.Wait()
	s.workers.stop()
}
