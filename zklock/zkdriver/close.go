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

// closer keeps the result of the first Close.
type closer struct {
	once sync.Once
	done chan struct{} // closed when err is set
	err  error         // set before done is closed, immutable after
}

func (c *closer) init() { c.done = make(chan struct{}) }

// Close implements driver.Session. Requests in flight get their outcome first, if it
// arrives in time. Requests that still wait are refused at once.
func (s *session) Close(ctx context.Context) error {
	first := false
	s.close.once.Do(func() { first = true })
	if !first { // it waits on a channel and not in Do, where a bubble of package synctest would stop
		<-s.close.done
		return s.close.err
	}
	s.beginClose()
	err := s.closeSession(ctx)
	if err != nil {
		err = fmt.Errorf("zkdriver: close session %#x: not confirmed by the ensemble, ephemeral znodes stay until the session expires: %w", s.ID(), err)
	}
	s.end()
	<-s.stopped
	s.close.err = err
	close(s.close.done)
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

// closeSession asks the ensemble to end the session and waits until it has, at most
// until ctx ends. The passing of a session timeout proves nothing: servers without a
// leader do not expire sessions.
func (s *session) closeSession(ctx context.Context) error {
	s.mu.Lock()
	none := s.id == 0
	s.mu.Unlock()
	if none {
		return nil
	}
	// Wait for the requests in flight: their outcomes arrive before that of the close
	// in any case, and a closed client drops them.
	select {
	case <-s.idling():
	case <-s.life.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	asked := false
	for {
		s.mu.Lock()
		expired, up, moved, given := s.expired, s.up, s.moved, s.given
		s.mu.Unlock()
		switch {
		case given != nil:
			return given
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
				return errors.New("the connection was lost after the request was sent")
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

// confirmClose records that the server has ended the session.
func (s *session) confirmClose() { close(s.confirmed) }

// quitClient closes the client, once. The client sends a close request if there is a
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
	// The client's loop is about to end. The client's Close wakes the loop first, and
	// puts its request into the queue afterwards. If the loop has ended by then,
	// Close waits in vain for a second. So delay the end of the loop a little.
	select {
	case <-s.quitting:
		t := time.NewTimer(lastCall)
		defer t.Stop()
		<-t.C
	default:
	}
}

// lastCall is how long the end of the client's loop is delayed.
const lastCall = 2 * time.Millisecond

// supervise owns all goroutines of the session. It watches over requests while the
// session lives, and ends everything when life ends.
func (s *session) supervise(events <-chan zk.Event) {
	defer close(s.stopped)
	look := time.NewTimer(s.watchdog())
	defer look.Stop()
	for open := events; ; {
		select {
		case <-look.C:
			look.Reset(s.watchdog())
		case _, ok := <-open: // the callback has processed it; the channel must not fill up
			if !ok {
				open = nil // a closed client sends no more
			}
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
	// Without a connection and after the end of life, the client answers all its
	// requests and then pauses. It is closed only after that, for two reasons. When
	// the client is closed, the creation of a container reads its result, even while
	// the client's reader still writes it. And a client that is closed before it
	// pauses needs a second for it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	select {
	case <-s.hosts.parked:
	case <-s.quitting: // the client is being closed already
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
	s.dialer.watching.Wait()
	s.workers.stop()
}
