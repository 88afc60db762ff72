package place

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A client can keep a place in ZooKeeper's queue when no goroutine of its process wants the
// name. The next acquisition of this process is then a hand-over, without a request. Invariants:
//
//   - For exclusion a kept place is a held one: its node is at the front of the queue, its
//     session's lease counts, and the next holder is granted it as in any other hand-over. The client
//     itself has a hold of the place, and loses the hold with the place.
//   - A kept place has a watch on the children of the name's znode, or that watch is being
//     armed, or the place is about to be recalled. Any other contender in the list, or any
//     change of the list, recalls the place: the limits of hand-over count from then on,
//     and the place is not kept again. The watch serves fairness only. If it is late, the
//     other contender waits longer.
//   - A place is kept only if its node's name says that it may be, because tries of other
//     clients look for that: see Attempt.blocked. The node's data says so, too, as long as it
//     describes no holder, or one that may have gone since: see Describe.

// keeping is what a place needs to be kept.
type keeping struct {
	keepable     bool          // it may be kept, as far as its creation shows; set before it is queued
	others       bool          // guarded by Desk.mu; another contender is, or may be, in the queue
	opened       bool          // guarded by Desk.mu; the client has kept the place; from then until its recall no limit of hand-over counts
	queueWatched bool          // guarded by Desk.mu; a guard watches its queue, since the client kept the place first, or since lookAfter
	recalled     time.Duration // guarded by Desk.mu; the time from the place's grant to its recall; 0: there was no recall
}

// A name is kept after KeepAfter uses in a row at first. Each recall for another client doubles that
// number, up to 64.
const (
	KeepAfter  = 2
	maxRecalls = 5
)

// mayKeep reports whether a place that is about to be created may be kept after its use: it
// has one name, and the uses in a row without a contender of others between them are enough
// with this one. Whether this use is one of them is known only after the creation.
func mayKeep(desk *Desk, wants []Want) bool {
	now := desk.parents.get(wants[0].Path)
	return len(wants) == 1 && now.uses+1 >= desk.cfg.KeepAfter<<now.recalls
}

// noteUse records that this client has created a contender with a suffix below a path. longer
// means that there are more uses in a row now: the contender is alone, and the first one or the
// successor of the one before.
func (d *Desk) noteUse(path string, suffix int64, alone bool) (longer bool) {
	longer = alone
	d.parents.known(path, func(known *parent) {
		uses := 0
		if alone {
			uses = 1
			if suffix == known.suffix+1 {
				uses += known.uses
			}
		}
		longer = uses > known.uses
		known.suffix, known.uses = suffix, uses
	})
	return longer
}

// RecallHandler is notified when a place is recalled.
type RecallHandler interface {
	// Recalled is called when there is, or may be, another contender in the queue of a place
	// that was kept, or that was held for long and may be kept. The place may be held at that
	// moment. It is called on a guard's goroutine, without a mutex, and at most once for each place.
	Recalled(p *Place)
}

// Keep keeps a spent place in the queue. Until the place is handed over or given up, h is
// its hold. Keep returns false, and does nothing, if the place has to leave the queue.
func (p *Place) Keep(h session.Dependent, onRecall RecallHandler) bool {
	desk := p.Desk
	if !desk.Session.Hold(h, 0) {
		return false
	}
	desk.mu.Lock()
	keeps := p.handoverLocked().MayBeKept() && !desk.Session.PastLifetime() && p.progress.moveLocked(held)
	queueWatched := p.queueWatched
	if keeps {
		p.hold, p.opened, p.queueWatched = h, true, true
	}
	desk.mu.Unlock()
	if !keeps {
		desk.Session.Drop(h)
		return false
	}
	if !queueWatched {
		p.watches.give(guarded{place: p, onRecall: onRecall})
	}
	return true
}

// Recall records that another contender is, or may be, in the queue of a place. stranger says
// that it cannot be another place of this client: then the name needs more uses in a row
// before it is kept again.
func (p *Place) Recall(stranger bool) {
	desk := p.Desk
	desk.mu.Lock()
	if p.others = true; p.opened { // else they have counted since the grant
		p.handovers, p.recalled = 0, time.Since(p.Granted)
	}
	desk.mu.Unlock()
	if stranger {
		desk.parents.known(p.nodes[0].dir, func(known *parent) {
			known.recalls = min(known.recalls+1, maxRecalls)
			known.uses = 0
		})
	}
}
