package place

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// creation is the creation of a place's nodes, in as many tries as it takes.
//
// Invariants:
//   - If it succeeds, its place becomes the attempt's, instead of the one that it replaces. If it fails, end
//     ends the new place, and the attempt has the place that it had.
//   - If the request's context ends while the outcome is open, its place becomes the attempt's, too, and
//     has the creation as its opening: another attempt of the same mode goes on with it, or Place.Remove ends it.
//     So a node that was made for this process belongs to the next goroutine that wants it.
//   - No hold has the replaced place again, whatever the outcome. That place stays registered until the client
//     knows that the transaction which deletes its nodes was applied, or until its attempt removes it.
//   - While open is nil, none of the new nodes exists. A node that appears nevertheless is a late create, which
//     lookouts find: see doubts.
type creation struct {
	desk     *Desk
	claim    *Claim
	by       Requester
	p        *Place
	replaces *Place          // the place whose nodes the same transaction deletes; nil if none
	parents  []parent        // as far as is known; a try may show that one is different
	caller   context.Context // of the acquisition
	began    time.Time
	seen     int64          // the transaction id of the newest creation that this client knew before the first try
	open     *session.Write // the newest write, until it is known that it was not applied; else nil
	doubt    error          // why the outcome of a try was unknown; nil: no outcome was
	lost     int            // how many outcomes were
	data     []byte         // of its nodes
	adopted  bool           // they describe an earlier request
}

// create creates the nodes of a new place, which replaces the one that the attempt has, and finds out
// whether they exist when a reply is lost. If the attempt has a place that is being created, create goes on
// with that. ctx bounds it, and caller does while the session answers.
//
// turn means that the transaction proves that it is the place's turn: see created.
func (a *Attempt) create(ctx, caller context.Context) (turn bool, err error) {
	c, err := a.creation(ctx, caller)
	if err != nil {
		return false, err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, a.desk().Session.Timeout()/10) {
		applied, children, err := c.try(ctx, pause)
		switch {
		case err != nil && c.goesOn():
			kept := c // a copy: that of most creations stays on the stack
			a.place, c.p.opening = c.p, &kept
			return false, err
		case err != nil:
			c.end()
			return false, err
		case applied:
			a.place = c.p
			return c.created(ctx, children)
		}
	}
}

// creation returns the creation of the place that the attempt has, or else a new one.
func (a *Attempt) creation(ctx, caller context.Context) (c creation, err error) {
	desk, r := a.desk(), a.Claim
	if had := a.place; had != nil && had.opening != nil {
		c = *had.opening.(*creation)
		c.p.opening, a.place = nil, c.replaces
		if c.claim.Mode == r.Mode { // TestWriterTakesUpNoReadersCreate
			c.claim, c.by, c.caller, c.adopted = r, a.By, caller, true
			return c, nil
		}
		c.end() // a writer must not get what was created for a reader
	}
	replaces := a.yield()
	// seen is read before the first try: that try may turn out to have created the nodes.
	c = creation{desk: desk, claim: r, by: a.By, replaces: replaces, caller: caller, began: lease.Now(), seen: desk.Session.Newest()}
	parents := make([]parent, len(r.Wants))
	for i, w := range r.Wants {
		z, known := Znode{desk, w.Path}, false
		if parents[i], known = z.known(replaces != nil); known {
			continue
		}
		if parents[i], err = c.ensure(ctx, z); err != nil {
			return c, err
		}
	}
	p, err := newPlace(a.Session, r.Wants, r.Keep && replaces == nil && mayKeep(desk, r.Wants), replaces)
	if err != nil {
		return c, err
	}
	c.p, c.parents = p, parents
	return c, nil
}

// yield gives up the attempt's place for a new one, and returns it; nil if there is none, or if it belongs to a hold.
func (a *Attempt) yield() *Place {
	if a.place != nil && a.place.giveUp() != nil {
		a.place = nil
	}
	return a.place
}

// goesOn reports whether the creation, which has failed, may go on for another goroutine: only its request's
// context has ended, and its write is under way. A try's does not: what is ahead of it decides.
func (c *creation) goesOn() bool {
	return c.open != nil && c.doubt == nil && c.caller.Err() != nil && !c.desk.Session.IsOver() && !c.claim.Try
}

// try sends the transaction that creates the nodes once. applied says that the nodes exist;
// children is as in session.Write. If nothing was applied and err is nil, the next try may
// succeed.
func (c *creation) try(ctx context.Context, pause time.Duration) (applied bool, children []int32, err error) {
	w, err := c.send(ctx)
	if err != nil {
		return false, nil, err
	}
	if w.Err == nil {
		return true, w.Children, nil
	}
	applied, err = c.repair(ctx, w, pause)
	return applied, nil, err
}

// send submits the creates, and waits for their outcome.
func (c *creation) send(ctx context.Context) (*session.Write, error) {
	desk := c.desk
	unclear := desk.freshNames.unclear.Load()
	w := c.open
	if w == nil { // else it goes on, and was sent for an earlier request
		w = c.submit()
	}
	for c.open = w; ; {
		select {
		case <-w.Done:
			desk.freshNames.note(w, unclear)
			return w, nil
		case <-desk.Session.Context().Done():
			return nil, errs.ErrSessionOver
		case <-ctx.Done():
			more, cancel := desk.Session.Patient(c.caller, c.began, time.Time{}) // the creates of others may come first
			defer cancel()
			if ctx = more; ctx.Err() == nil { // TestBurstOfSeparateWaitersOutlastsConnectTimeout
				continue
			}
			return nil, c.because(desk.Session.WaitEnded(ctx, c.began))
		}
	}
}

// recover finds out whether a creation whose reply was lost was applied. It lists after a
// Sync, which orders the list behind every request that the old connection may have sent:
// after a reconnect, servers refuse requests of the old connection. The nodes of a place
// were created by one transaction, so the first node decides for all of them; each of the
// others needs a list of its own queue, to learn the node's name.
func (p *Place) recover(ctx context.Context) (found bool, err error) {
	desk := p.Desk
	for i, c := range p.nodes {
		var q []queue.Node
		err = desk.Session.Repeat(ctx, "recover", func(ctx context.Context, ds driver.Session) error {
			if err := ds.Sync(ctx, c.dir); err != nil {
				return err
			}
			q, _, err = Znode{desk, c.dir}.listOnce(ctx, ds)
			return err
		})
		if err != nil && !errors.Is(err, driver.ErrNoNode) { // no parent: no node
			return false, err
		}
		at := slices.IndexFunc(q, func(o queue.Node) bool { return o.GUID == c.guid }) // the first, if there are two; TestOfTwinsTheFirstCounts
		if at < 0 && i > 0 {
			return true, errs.ErrNodeGone // it was created, as the first one was: another client has deleted it
		}
		if at < 0 {
			return false, nil
		}
		desk.mu.Lock()
		c.path = c.dir + "/" + q[at].Name
		desk.mu.Unlock()
	}
	return true, nil
}

// end ends the new place: its write is not sent any more, or its nodes are looked for, and deleted in the background.
func (c *creation) end() {
	desk, p, w, parents := c.desk, c.p, c.open, c.parents
	if w == nil {
		p.unregister()
		return
	}
	_ = p.giveUp() // no hold has a place that is being created
	w.GiveUp()
	desk.Session.Spawn(func() {
		<-w.Done // soon: it runs on the session's context
		if errors.Is(w.Err, driver.ErrConnLoss) {
			p.doubtful = true
			_, err := p.recover(desk.Session.Context())
			for errors.Is(err, driver.ErrReplyTooLarge) && session.Sleep(desk.Session.Context(), desk.Session.Timeout(), nil) { // TestLostReplyAndATooLongListLeaveNoOrphan
				_, err = p.recover(desk.Session.Context()) // other programs may have removed children
			}
		}
		desk.mu.Lock()
		applied := p.nodes[0].path != ""
		desk.mu.Unlock()
		if !applied {
			p.unregister()
			return
		}
		desk.addMade(parents)
		_ = p.finishDelete(p.Leave(desk.Session.Context())) // with those of others in one transaction
	})
}

// created completes a place whose nodes exist. The same transaction has deleted the place that it
// replaces. On an error the attempt removes the place.
//
// turn means that the transaction proves that it is the place's turn. It does if no other contender is in the
// queue: each parent's count of children, right after the create, was 1. A larger count proves it for a permit
// that replaces one: see mayCount. For other kinds it proves nothing: the other children may be readers, or not
// be contenders at all.
func (c *creation) created(ctx context.Context, children []int32) (turn bool, err error) {
	desk, p := c.desk, c.p
	last, limit := p.lastNumber(), desk.cfg.MaxContenders // a limit for new contenders only
	p.limitChecked = c.replaces != nil || c.claim.comesAgain || limit == 0 || len(children) > 0 && slices.Min(children) >= 0 && int(slices.Max(children)) <= limit
	c.claim.comesAgain = false
	if c.replaces != nil {
		c.replaces.unregister()
	}
	if p.Zxid == 0 { // it was created without a set, or found again
		var n driver.Node
		ctx, stop := c.patience(ctx)
		n, err = desk.Session.Read(ctx, "recover", p.nodes[0].path)
		stop()
		if p.Zxid = n.Stat.Czxid; errors.Is(err, driver.ErrNoNode) {
			err = errs.ErrNodeGone
		}
	}
	desk.addMade(c.parents)
	if err == nil {
		err = p.accept(c.seen, last, children)
	}
	if err != nil {
		return false, err
	}
	alone := len(children) > 0 && slices.Min(children) == 1 && slices.Max(children) == 1
	for _, n := range p.nodes {
		longer := desk.noteUse(n.dir, last, alone && !p.doubtful && len(p.nodes) == 1)
		p.keepable = p.keepable && longer
	}
	desk.mu.Lock()
	p.others = !alone
	p.progress.moveLocked(queued)
	undescribed := p.dataTurn == 0 && !alone // it was created as one that may be kept
	if c.adopted {
		p.dataTurn = 0
	}
	desk.mu.Unlock()
	if undescribed {
		p.Describe(&c.claim.Origin)
	}
	permits := p.nodes[0].kind.Permits
	within := permits > 0 && len(children) == 1 && children[0] > 0 && int(children[0]) <= permits
	if permits > 0 {
		p.unmarked, p.marks = c.data, !within
	}
	return alone || within && !p.nodes[0].guid.Looks(), nil
}

// accept checks a place whose nodes exist: its sequence numbers, up to last,
// must be usable, no queue may have more contenders than max_contenders allows, and its
// transaction id, which becomes the token, must be larger than seen. A queue that has one
// contender too many may have a kept place, which does not count: Place.listQueue finds out.
func (p *Place) accept(seen, last int64, children []int32) error {
	desk := p.Desk
	if last >= queue.MaxSequence {
		return errs.ErrSequenceExhausted
	}
	if !p.limitChecked && len(children) > 0 && int(slices.Max(children)) > desk.cfg.MaxContenders+1 {
		return desk.cfg.tooMany()
	}
	return desk.Session.Note(seen, p.Zxid)
}
