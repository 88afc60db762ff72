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
//  4. Grant, if the session is proven alive for long enough, and our own node still exists. It is
//     read on the connection that showed that no contender excludes us.
//
// A place of several names has a node for each, made by one transaction. Steps 2 and 3 are for one name
// after the other, and step 4 for all of them.
//
// Why the order of the steps suffices:
//
//   - No contender gets ahead of a node that exists: a server gives a new node a higher number than
//     all that were created before below the same znode. So what step 2 has found for our node stays
//     true while our node exists: for the other names meanwhile, and during a wait for the lease.
//   - A departure alone proves nothing: the one that left may have been a waiter, with the holder ahead
//     of it. So step 2 decides again.
//   - Our own node may be gone: another program has deleted it. Then the contender behind us has its turn,
//     too, and only one of us may go on. One connection shows states of the ensemble in their order. So
//     if it shows that no contender excludes us, and then that our node exists, both are true at once,
//     and the contender behind us still finds our node ahead of it. On two connections the second server
//     may lag behind the first. Then both are read again.
//   - The lease is awaited before that read, which may be late, and Grant looks at it a last time. If it is
//     too short by then, the read is repeated, and the list is not.
//   - One list that shows our own node, and that none ahead excludes it, shows both in one state. So a permit, whose
//     turn a list always shows, is granted by that, unless the lease has to be awaited.
//   - If the create's reply says that our node is the only one below the znode, steps 2 and 3 are done. So
//     they are for a permit that replaces one, if there are no more nodes than permits.
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
		q, err := a.list() // up to our own node, which is the last; of a try: only that, or the try has failed
		if err != nil {
			return err
		}
		if ours, ahead := queue.Decide(q, len(q)-1); !ours {
			if err := a.await(q, ahead); err != nil {
				return err
			}
			continue
		}
		conn, everywhere := a.atFront()
		if !everywhere {
			continue // with the next name
		}
		if a.sawItself(q) && a.Desk.Leased() && a.place.Grant(a.By) {
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
