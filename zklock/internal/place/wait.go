package place

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A waiter that is not the first in line rests: it does not need the lease. It needs the
// lease again as soon as a watch has fired, before it reads anything: so a session at rest
// proves its lease while the waiter finds out whether its turn has come. A wake-up to read
// again after a reconnect, or to watch our own nodes, does not end the rest. Nor does the end of the wait: a place that is
// only to be removed needs no lease, and no heartbeat for it.

// beginWait begins the wait for the turn of the attempt's place. It is ended once, by endWait.
func (a *Attempt) beginWait(ctx context.Context) {
	if a.wait.ctx = ctx; a.Claim.Try {
		a.wait.ctx, a.wait.stop = a.bound(ctx)
	}
}

// endWait ends the wait.
func (a *Attempt) endWait() {
	a.wait.ended = context.Cause(a.wait.ctx)
	if a.wait.stop != nil {
		a.wait.stop()
	}
}

// rest notes whether the place rests.
func (a *Attempt) rest(begin bool) {
	switch p := a.place; {
	case begin && !p.resting:
		a.desk().Session.Rest()
	case !begin && p.resting:
		a.desk().Session.Stir()
	}
	a.place.resting = begin
}

// list returns the queue of the name that it waits for, and the index of our own node: from a list, or from
// what it knows already.
func (a *Attempt) list() (q []queue.Node, self int, err error) {
	p, w := a.place, &a.wait
	if w.line.p == nil {
		if err := a.screen(); err != nil {
			return nil, 0, err
		}
		w.line = line{p: p, c: p.nodes[w.name]}
		w.watchOwn = p.Granted.IsZero() && p.nodeWatches != nil
	}
	q, self, err = a.refresh()
	if err == nil && a.Claim.Try && !a.recalls {
		return a.refuse(w.ctx, w.line.c, q, self)
	}
	return q, self, err
}

// refresh returns the line of the name that it waits for, from a list if that is needed. One that was woken on the first of several names lists
// all of them together: as a rule those ahead have left all of their names in one transaction, and its turn has come on all.
func (a *Attempt) refresh() (q []queue.Node, self int, err error) {
	p, w := a.place, &a.wait
	if w.name == 0 && w.woken && len(p.nodes) > 1 {
		w.looks = make([]look, len(p.nodes))
		p.eachNode(func(i int) {
			l := &w.looks[i]
			l.sight.Gen = p.Desk.Session.Generation()
			l.q, l.self, l.err = p.listQueue(w.ctx, p.nodes[i])
		})
	}
	if w.looks == nil {
		return w.line.refresh(w.ctx)
	}
	l := w.looks[w.name]
	if l.err != nil {
		return nil, 0, l.err
	}
	w.line.sight = l.sight
	w.line.reset(l.q, l.self)
	return l.q, l.self, nil
}

// screen lists the queues of all names, before the wait for the first one, if that may end the
// attempt or the wait of another contender.
//
// A twin of ours may be ahead of a contender on one name, while that contender is
// ahead of us on another: the two would wait for each other. A list of the queue
// finds the twin and has it deleted. It also finds a queue that is too long,
// before the place has waited to be the first in another one.
func (a *Attempt) screen() error {
	p := a.place
	if a.wait.name > 0 || !p.doubtful && (p.limitChecked || len(p.nodes) == 1) { // TestTwinOfAllOnItsSecondName
		return nil
	}
	for _, c := range p.nodes { // the lines list again: much may happen before their turn
		if _, _, err := p.listQueue(a.wait.ctx, c); err != nil {
			return err
		}
	}
	p.limitChecked = true
	return nil
}

// await watches the contenders of a queue that ours waits for, and waits until the queue has to be
// looked at again. Each watch also reads the node's data, since a writer may have been downgraded to
// a reader. Our own nodes are watched too: a waiter whose node was deleted queues again at once. So does one for a permit that
// the count may have granted, behind one that asks for fewer, which counts it as ahead: then it is granted by a look only.
func (a *Attempt) await(q []queue.Node, self int, ahead queue.Watchlist) error {
	desk, w, l := a.desk(), &a.wait, &a.wait.line
	if a.place.lowered && !q[self].Looks() {
		a.Claim.comesAgain = true
		return errs.ErrNodeGone
	}
	w.looks, w.woken = nil, w.name == 0
	for _, i := range ahead.On {
		l.watched = append(l.watched, q[i])
	}
	l.watches, l.spare, l.awaitsGrant = make([]*session.Watched, len(l.watched)), ahead.Spare, ahead.Grant
	// What the waiter does not know makes it only seem further back: the queue may be shorter
	// than the line. A place that is far on one of its names cannot be granted next, wherever it
	// is on the others.
	far := !queue.First(q, self)
	var own []*session.Watched
	for l.watched != nil {
		if err := l.watchAhead(w.ctx); err != nil {
			return err
		}
		if l.watched == nil {
			return nil // the line has changed: decide again
		}
		if w.watchOwn {
			var err error
			if own, err = a.place.watchNodes(w.ctx); err != nil {
				return err
			}
		}
		watches, nearest := l.watches, len(l.watches)-1
		a.By.Waits(a.place, l.c.dir, l.ahead, entryOf(l.watched[nearest], watches[nearest].Node, false))
		a.rest(far)
		fired, gone, stands, err := desk.awaitChange(w.ctx, watches, own, a.unwatched())
		if fired != nil && l.c.kind.Permits > 0 && !slices.Contains(own, fired) && l.goesOn() {
			continue
		}
		if fired != nil {
			a.rest(false)
		}
		switch {
		case err != nil:
			return err
		case fired == nil:
			w.watchOwn = true
		case l.c.kind.Permits > 0:
			l.forget()
		case gone:
			l.removeGone(0, watches[0].Gen, true)
			l.proven = l.sole && stands
			if l.proven {
				a.place.heard.Store(watches[0].Gen)
			}
		}
		clear(watches) // those that still count are joined
	}
	return nil
}

// window returns how many of the first in line for as many permits watch those ahead of them: see queue.Decide. A permit's turn takes the
// holder's work and two round trips: the release and the event, and a list. To become one of the first in line takes three: the mark and the event, a
// list, and the watches. Windows pass that on side by side, so there are as many as it takes for work, or for more. Near the servers that is one: a larger
// window costs requests.
func (a *Attempt) window(permits int) int {
	const work = 20 * time.Millisecond
	latency := a.desk().Session.Latency()
	return 1 + int(3*time.Duration(permits)*latency/(work+2*latency))
}

// unwatched returns how long a wait does without a watch on our own nodes, which costs a read, and an event
// at the release. Where that watch can grant the place, it is worth its cost if the wait outlasts a list.
func (a *Attempt) unwatched() time.Duration {
	long := a.desk().Session.Timeout() / 40
	if a.wait.line.known && a.wait.line.sole && len(a.place.nodes) == 1 {
		return min(long, max(2*a.desk().Session.Latency(), 5*time.Millisecond))
	}
	return long
}

// atFront notes that no contender on the name that it waits for excludes ours, and turns to the next
// name. everywhere is true if that was the last one; conn is then the connection that showed it
// on all names, or 0 if that was more than one. After that the wait begins again with the first name.
func (a *Attempt) atFront() (conn uint64, everywhere bool) {
	w := &a.wait
	a.rest(false)
	switch gen := w.line.sight.Gen; {
	case w.name == 0:
		w.conn = gen
	case gen != w.conn:
		w.conn = 0
	}
	w.line = line{}
	if w.name = (w.name + 1) % len(a.place.nodes); w.name == 0 {
		w.looks, w.woken = nil, false
	}
	return w.conn, w.name == 0
}

// isProven reports whether for each name one state of the ensemble has shown the place's turn, and its node: a list or an event that of the only
// name, lists that it had begun together those of several. A list from before a wait for another name does not count: our node there may have
// gone since.
func (a *Attempt) isProven() bool {
	w := &a.wait
	return (w.looks != nil || w.line.proven && len(a.place.nodes) == 1) && !a.Claim.Try
}

// leasedSoon reports whether the session is proven alive for long enough for a grant, or will be within the time of a write: one that
// has rested proves that while it lists. A list that took so much longer would prove as much. A slow write does not count: our own node could be
// deleted meanwhile, and a wait does without a watch on it for no longer than that.
func (a *Attempt) leasedSoon() bool {
	s := a.desk().Session
	if s.Leased() {
		return true
	}
	ctx, stop := context.WithTimeout(a.wait.ctx, min(s.Latency(), s.Timeout()/40))
	defer stop()
	return s.AwaitLease(ctx) == nil
}

// awaitLease returns when the session is proven alive for long enough for a grant.
func (a *Attempt) awaitLease() error { return a.desk().Session.AwaitLease(a.wait.ctx) }

// readOwn reads our own nodes, and returns the connection that showed all of them; 0 if that was more
// than one. A place that cannot be granted any more counts as one whose node is gone.
func (a *Attempt) readOwn() (conn uint64, err error) {
	if a.place.passedOnRevoked() {
		return 0, errs.ErrNodeGone
	}
	return a.place.readNodes(a.wait.ctx)
}

// watchNodes arms watches on our own nodes for the time of a wait, or joins those that stand. They report the
// nodes' deletion by another client.
func (p *Place) watchNodes(ctx context.Context) (own []*session.Watched, err error) {
	own = make([]*session.Watched, len(p.nodes))
	for i, c := range p.nodes {
		if own[i], _, err = p.Desk.Session.Watch(ctx, c.path); err == nil {
			err = p.owns(own[i].Node)
		}
		if err != nil {
			return nil, p.missing(c, err)
		}
	}
	if p.Granted.IsZero() { // else guards watch its nodes
		p.nodeWatches = own
	}
	return own, nil
}

// missing returns the error of a read of one of our nodes, which has failed.
func (p *Place) missing(c *ownNode, err error) error {
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, errs.ErrNodeGone) {
		return errs.ErrNodeGone
	}
	return p.Desk.cfg.explainList(err, c.dir)
}
