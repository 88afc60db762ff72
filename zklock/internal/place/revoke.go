package place

import "github.com/zklock/go-zklock/zklock/internal/queue"

// An operator revokes a place by a change of the data of one of its nodes: see queue.Revoke.
// The place's client learns of that from the watches on its own nodes. Invariants:
//
//   - A revoked place keeps its hold, and its node stays in the queue, until the holder
//     releases it; the client's own hold ends at once. It is not handed over, not joined and not kept
//     from then on. So the operator's request ends with the holders that it was meant for.
//   - revocation is set once, under the desk's mu, and never cleared. A hold that begins
//     before that is notified. After that only the place's first hold can begin.
//   - A holder that attends finds the revocation when it begins to attend, or is notified
//     later, or both. It is never missed: the read that arms a watch on a node has its data.

// Revocable is the hold of a place, if it can be asked to give the place back.
type Revocable interface {
	// Revoke asks for the place. It is called on a goroutine of its own, at most once for
	// each hold, which may have left the place by then.
	Revoke(reason string)
}

// Attend makes the client watch the nodes of a granted place at once, for a holder that wants
// to learn of a revocation. If the place is revoked already, revoked is true. Else its hold's
// Revoke is called when it is.
func (p *Place) Attend() (reason string, revoked bool) {
	p.guardNodes()
	p.Desk.mu.Lock() // a revocation that is not seen here finds the hold
	defer p.Desk.mu.Unlock()
	if r := p.revocation.Load(); r != nil {
		return *r, true
	}
	return "", false
}

// noteRevocation revokes a place if the data of one of its nodes says so, and asks its hold
// to give it back.
func (p *Place) noteRevocation(data []byte) {
	reason := queue.Revocation(data)
	if reason == "" {
		return
	}
	desk := p.Desk
	desk.mu.Lock()
	first := p.revocation.CompareAndSwap(nil, &reason)
	holder := p.hold
	desk.mu.Unlock()
	if h, ok := holder.(Revocable); ok && first {
		desk.Session.Spawn(func() { h.Revoke(reason) }) // ending contexts may take a while
	}
}

// isRevoked reports whether a place is revoked.
func (p *Place) isRevoked() bool { return p.revocation.Load() != nil }

// passedOnRevoked reports whether a place was revoked after its first hold had begun: then it
// has no further hold. A waiter's place can be revoked before its first hold, which is asked
// to give it back as soon as it begins.
func (p *Place) passedOnRevoked() bool { return p.isRevoked() && !p.Granted.IsZero() }
