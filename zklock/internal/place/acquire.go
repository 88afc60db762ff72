package place

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// acquire is ZooKeeper's recipe for locks:
//
//  1. Enqueue: create an ephemeral sequential node below the znode of the name.
//  2. List the nodes there. If none excludes ours and is ahead of it, go on with step 4.
//  3. Watch the nearest that does, wait until it changes or is gone, and go on with step 2.
//  4. Grant, if the session is proven alive for long enough, and if it is known that in one state of the
//     ensemble no contender ahead excluded ours and our own node existed.
//
// A place of several names has a node for each, made by one transaction. Steps 2 and 3 are for one name
// after the other, and step 4 for all of them, with a state for each name, since contenders exclude each other on one name.
// A state that was shown before a wait for another name does not count: much may have happened to our own node since. Why that suffices:
//
//   - No contender gets ahead of a node that exists: a server gives a new node a higher number than all that
//     were created before below the same znode. So from such a state on it is our turn until our node goes,
//     however late the client learns of it, on this name and on the others.
//   - A departure alone proves nothing: the one that left may have been a waiter, with the holder ahead
//     of it. So step 2 decides again.
//   - Our own node may be gone: another program has deleted it. Then the contender behind us has its turn,
//     too, and only one of us may go on. So step 4 wants one state.
//
// What shows both in one state, see line.proven and creation.created:
//
//   - The create's reply, if it says that our node is the only one below the znode; for a permit that replaces
//     one, if there are no more nodes than permits.
//   - A list with our own node in it, and none ahead that excludes it. It shows names and no owners: where another
//     program has put a node of its own in place of ours, a waiter with several ahead is granted by that, until the
//     guard of its node sees the owner.
//   - The event that the node ahead was deleted, if the list had shown no other ahead, and a watch stands on our
//     own node: a read on the connection of that event armed it, and it had not fired when the event was received.
//     One connection brings the events of transactions in their order, so an earlier deletion of our node would
//     have fired it; and a read after the deletion ahead shows more. After a reconnect no event counts: what was
//     missed is reported in any order.
//   - A later read of our own node, on the connection that showed none ahead: one connection shows states in their
//     order. So do replies on two (see driver.Session), but the next server may lag behind an event. Then the
//     client lists again. The lease is awaited before that read, and if Grant finds it too short, the read is repeated.
//
// Whatever stands ahead changes nothing of this. For a contender of another program, the order of which is not known, the client
// lists again after each event; for permits, too, since one that leaves may have been passed. A candidate's place is that of a
// mutex, and a kept name's goes as any other, when its client gives it up.
//
// One transaction may delete the only one ahead and then our own node. Then the first of its two events grants. But
// the one ahead held, or was the next to hold, and for a holder whose node another program deletes nothing is
// promised. So no other may be ahead, not even a reader, which would go on holding.
//
// What is not the recipe stands around it: how a place is found that waits already, or replaced, in
// enqueue.go; a try, which does not wait, in try.go; what a waiter knows and watches in wait.go; and
// what becomes of the place after an error in take.go.
func (a *Attempt) acquire(ctx context.Context) error {
	turn, err := a.enqueue(ctx)
	if err != nil {
		return err
	}
	if turn && a.place.Grant(a.By) {
		return nil
	}
	a.beginWait(ctx)
	defer a.endWait()
	for {
		q, self, err := a.list() // of a try: our own node only, or the try has failed
		if err != nil {
			return err
		}
		if ours, ahead := queue.Decide(q, self, a.window(q[self].Kind.Permits)); !ours {
			if err := a.await(q, self, ahead); err != nil {
				return err
			}
			continue
		}
		proven := a.isProven()
		conn, everywhere := a.atFront()
		if !everywhere {
			continue // with the next name
		}
		if proven && a.leasedSoon() && a.place.Grant(a.By) {
			return nil
		}
		for conn != 0 { // the connection that showed that; 0: there was more than one, so list again
			if err := a.awaitLease(); err != nil {
				return err
			}
			own, err := a.readOwn()
			if err != nil {
				return err
			}
			if own != conn {
				break // list again: the two prove nothing together
			}
			if a.place.Grant(a.By) {
				return nil
			}
		}
	}
}
