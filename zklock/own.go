package zklock

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// ownWatches sees to it that a holder learns when somebody else, an operator
// for example, deletes its node: the lease alone would not notice. A place
// granted after a wait has its watches already. One granted at once gets them a
// sixth of the session timeout later, whoever holds it then: a watch on every
// short lock would halve the throughput.
type ownWatches struct {
	s     *session
	delay time.Duration
	added chan struct{} // cap 1: the list is no longer empty

	mu    sync.Mutex
	due   list.List                // guarded by mu; of *ownDue, in order of time
	at    map[*place]*list.Element // guarded by mu
	armed bool                     // guarded by mu; run's timer is set, for no later than the first is due
}

type ownDue struct {
	p  *place
	at time.Time
}

func (o *ownWatches) init(s *session) {
	o.s, o.delay, o.added, o.at = s, s.timeout/6, make(chan struct{}, 1), make(map[*place]*list.Element)
}

// add takes charge of a place that has just been granted for the first time.
// It waits for nothing: the session's mu is held.
func (o *ownWatches) add(p *place) {
	delay := o.delay
	if p.own != nil {
		delay = 0
	}
	o.mu.Lock()
	d := &ownDue{p, time.Now().Add(delay)}
	rouse := !o.armed
	if delay == 0 {
		o.at[p], rouse = o.due.PushFront(d), true
	} else {
		o.at[p] = o.due.PushBack(d)
	}
	o.mu.Unlock()
	if rouse {
		o.s.poke(o.added)
	}
}

// remove forgets a place that is given up.
func (o *ownWatches) remove(p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.at[p]; e != nil {
		o.due.Remove(e)
		delete(o.at, p)
	}
}

// next takes the first place that is due off the list, or says how long it is
// until there is one; negative: the list is empty.
func (o *ownWatches) next() (*place, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.due.Front()
	if o.armed = first != nil; !o.armed {
		return nil, -1
	}
	d := first.Value.(*ownDue)
	if wait := time.Until(d.at); wait > 0 {
		return nil, wait
	}
	o.due.Remove(first)
	delete(o.at, d.p)
	return d.p, 0
}

// run arms the watches that are due, until the session ends.
func (o *ownWatches) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait := o.next()
		if p != nil {
			for i := range p.nodes {
				o.s.spawn(func() { o.guard(p, i) })
			}
			continue
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-o.added:
		case <-o.s.ctx.Done():
			return
		}
	}
}

// guard watches one node of a place until that is given up.
func (o *ownWatches) guard(p *place, i int) {
	s := o.s
	var w *watched
	if p.own != nil {
		w = p.own[i]
	}
	for {
		if w == nil {
			var err error
			w, err = s.watch(s.ctx, p.nodes[i].path())
			switch {
			case errors.Is(err, driver.ErrNoNode):
				select {
				case <-p.left: // it was this client that took it away
				default:
					p.lose()
				}
				return
			case err != nil:
				if s.ctx.Err() == nil {
					s.client.cfg.logger.Warn("zklock: a held lock's own node cannot be watched; its deletion by somebody else would go unnoticed", "session", s.ds.ID(), "cause", logged(err))
				}
				return
			}
		}
		gen, moved := s.connection()
		if gen > w.gen {
			if !sleep(s.ctx, s.client.cfg.jitter(s.timeout/6), p.left) {
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
		case <-p.left:
			return
		case <-s.ctx.Done():
			return
		}
	}
}
