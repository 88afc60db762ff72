package zklock

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// ownWatches sees to it that a holder learns when somebody else, an operator
// for example, deletes its node: the lease alone would not notice. A lock
// granted after a wait has its watch already. One granted at once gets it a
// sixth of the session timeout later, if it is still held then: a watch on
// every short lock would halve the throughput.
type ownWatches struct {
	s     *session
	delay time.Duration
	added chan struct{} // cap 1: the list is no longer empty

	mu  sync.Mutex
	due list.List // guarded by mu; of *ownDue, in order of time
}

type ownDue struct {
	h  *hold
	at time.Time
}

func (o *ownWatches) init(s *session) {
	o.s, o.delay, o.added = s, s.timeout/6, make(chan struct{}, 1)
}

// add takes charge of a hold that has just been granted.
func (o *ownWatches) add(h *hold) {
	if h.own != nil {
		o.s.spawn(func() { o.guard(h, h.own) })
		return
	}
	o.mu.Lock()
	h.timer = o.due.PushBack(&ownDue{h, time.Now().Add(o.delay)})
	first := o.due.Len() == 1
	o.mu.Unlock()
	if first {
		o.s.poke(o.added)
	}
}

// remove forgets a hold that has ended.
func (o *ownWatches) remove(h *hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.timer != nil {
		o.due.Remove(h.timer)
		h.timer = nil
	}
}

// run arms the watches that are due, until the session ends.
func (o *ownWatches) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		o.mu.Lock()
		first := o.due.Front()
		if first == nil {
			timer.Stop()
		} else {
			d := first.Value.(*ownDue)
			if wait := time.Until(d.at); wait > 0 {
				timer.Reset(wait)
			} else {
				o.due.Remove(first)
				d.h.timer = nil
				o.mu.Unlock()
				o.s.spawn(func() { o.guard(d.h, nil) })
				continue
			}
		}
		o.mu.Unlock()
		select {
		case <-timer.C:
		case <-o.added:
		case <-o.s.ctx.Done():
			return
		}
	}
}

// guard watches a hold's node until the hold ends. w is an armed watch, or nil.
func (o *ownWatches) guard(h *hold, w *watched) {
	s := o.s
	for {
		if w == nil {
			var err error
			w, err = s.watch(s.ctx, h.c.path())
			switch {
			case errors.Is(err, driver.ErrNoNode):
				h.loseNode()
				return
			case errors.Is(err, ErrUnavailable) && s.ctx.Err() == nil:
				continue // the lease decides how long that can go on
			case err != nil:
				if s.ctx.Err() == nil {
					s.client.cfg.logger.Warn("zklock: a held lock's own node cannot be watched; its deletion by somebody else would go unnoticed", "error", explain(err, h.c.dir))
				}
				return
			}
		}
		gen, moved := s.connection()
		if gen > w.gen {
			if !sleep(s.ctx, jitter(s.timeout/6), h.ended) {
				return
			}
			w = nil
			continue
		}
		select {
		case e, ok := <-w.event:
			w.received(e, ok)
			s.watches.drop(w)
			w = nil // read again: an event proves nothing
		case <-moved:
		case <-h.ended:
			return
		case <-s.ctx.Done():
			return
		}
	}
}
