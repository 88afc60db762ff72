package place

import (
	"context"
	"math"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Amend changes the data of a place's nodes: it reads each of them, calls change, and writes
// the result if it differs, with the version that it has read, again until no other write
// was in between. So several writers of one node, such as a holder that sets its label and
// an operator that asks for the lock, never undo each other's changes. A write whose reply
// was lost, and which the ensemble applies late, finds a newer version and does nothing.
//
// Two rules keep a label that SetLabel has confirmed. A change concerns only what its caller
// says. And what it says of a holder it takes from the hold that has the place at that moment:
// SetLabel notes the label in the hold before it calls Amend.
//
// change may be called several times. Amend repeats requests until it is done, ctx or the
// session has ended, or a node is gone.
func (p *Place) Amend(ctx context.Context, change func(*queue.Data)) error {
	for _, c := range p.nodes {
		err := p.Desk.rewrite(ctx, "mark", c.path, func(n driver.Node) ([]byte, error) {
			was, ok := queue.Decode(n.Data)
			is := was
			if change(&is); ok && is == was {
				return n.Data, nil
			}
			return is.Encode(), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// BecomeShared turns a writer's place that a reader has taken over into a reader's
// place. The place keeps its node, and so its position. For readers of other processes the node
// is a writer's until its data says that it is a reader's, which Describe writes. BecomeShared
// returns false if it was a reader's place before. For waiting see Describe.
func (p *Place) BecomeShared(waiting *Origin) bool {
	p.Desk.mu.Lock()
	own := &p.nodes[0].kind
	becomes := own.Mode.Lowers()
	if becomes {
		own.Mode = own.Mode.Lowered()
	}
	p.Desk.mu.Unlock()
	if becomes {
		p.Describe(waiting)
	}
	return becomes
}

// Describe writes into the data of a place's node, in the background, what the place is used
// for: by readers, if it has become theirs, and by its holder, if the data describe another;
// if none has it yet, by waiting, the request that waits in it, if that is not nil.
func (p *Place) Describe(waiting *Origin) {
	desk := p.Desk
	desk.Session.Spawn(func() {
		var turn uint32
		if p.Amend(desk.Session.Context(), func(d *queue.Data) { turn = p.describe(d, waiting) }) != nil {
			return // the node or the session is gone
		}
		desk.mu.Lock()
		p.dataTurn = max(p.dataTurn, turn)
		recalled := p.recalled > 0
		desk.mu.Unlock()
		if recalled && session.Sleep(desk.Session.Context(), p.watches.delay(), nil) {
			p.lookAfter() // it may have been handed over since
		}
	})
}

// describe is the change of Describe. It returns the new value of dataTurn; 0 if that does
// not change. The data of a place that may be kept describe no holder: none writes anything.
func (p *Place) describe(d *queue.Data, waiting *Origin) (dataTurn uint32) {
	h, o := p.holder()
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if mode := p.nodes[0].kind.Mode; mode.Joins() && len(p.nodes) == 1 { // the nodes of several names are what they were created as; TestWritersNodeOfSeveralStaysAWriters
		d.Mode = mode.String()
	}
	switch {
	case h == nil:
		o = waiting
	case p.hold == h: // else the next holder has the place by now, and is described later
		dataTurn = p.turn
	}
	if o == nil || dataTurn > 0 && p.dataTurn == dataTurn || p.keepable && !p.others {
		return 0
	}
	d.Label, d.Trace, d.Revocable, d.Keep = o.Label, o.Trace, o.Revocable, false
	d.Asked(o.since()) // TestDataOfAnotherHolderStillSayHowLateTheNodeIs
	return dataTurn
}

// holder returns the present holder, and what others read of it; nil if there is none. It reads the
// place, the hold, and the place again, so the hold had the place in between.
func (p *Place) holder() (h Holder, o *Origin) {
	for {
		h, ok := p.Holder().(Holder)
		if !ok {
			return nil, nil
		}
		if o := h.Origin(); p.Holder() == h {
			return h, &o
		}
	}
}

// Relabel is the change of Place.Amend that writes the label of the present holder, if there is
// one. If the data describe another holder, it writes the rest of the description, too.
func (p *Place) Relabel(d *queue.Data) {
	h, o := p.holder()
	if h == nil {
		return
	}
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if d.Label = o.Label; p.hold != h || p.dataTurn != p.turn {
		d.Trace, d.Revocable = o.Trace, o.Revocable
		d.Asked(o.since())
	}
}

// ShareAt calls do with a writer's place at the time when, or later, if the place is not given up
// first. Then do turns it into a reader's place, if readers hold it. ShareAt does nothing for a
// reader's place, and nothing if it was called before.
func (p *Place) ShareAt(when time.Time, do func(*Place)) {
	desk := p.Desk
	desk.mu.Lock()
	defer desk.mu.Unlock()
	if p.share == nil && p.nodes[0].kind.Mode.Lowers() {
		p.share = time.AfterFunc(time.Until(when), func() { desk.Session.Spawn(func() { do(p) }) })
	}
}

// Advance returns a turn for the readers that join the hold h after its downgrade; it is later than
// that of the hold. It returns false if h does not have the place, or if there is no turn left.
func (p *Place) Advance(h session.Dependent) (turn uint32, ok bool) {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.hold != h || p.turn == math.MaxUint32 {
		return 0, false
	}
	turn = p.turn
	p.turn++
	p.dataTurn++ // as it was: the hold stays
	return turn, true
}

// Lower turns a writer's place into a reader's for this process. It returns false, and does nothing,
// if h does not have the place: another holder may have got it as a writer. The caller has made h a
// reader's before, and amends the node's data after that.
func (p *Place) Lower(h session.Dependent) bool {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.hold != h {
		return false
	}
	own := &p.nodes[0].kind
	own.Mode = own.Mode.Lowered() // it is never handed to a writer again
	return true
}
