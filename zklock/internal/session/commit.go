package session

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// Limits of group commit. Two transactions under way keep the server's pipeline full; more
// would only make the groups smaller. Creates below one znode share no group, so at a distance they would wait for each other's
// answers: they may have more transactions under way. Larger groups do not make it faster, and a server keeps its last 500
// transactions in memory.
const (
	maxFlights    = 2
	maxCreates    = 32
	maxGroupBytes = 64 << 10
)

// Write is one caller's operations, which are one member of a group.
type Write struct {
	Kind    string      // for the Operation hook
	Ops     []driver.Op // in order
	Creates Newcomers   // the contenders that Ops create; nil if none

	Risky bool            // it is likely to be refused where another risky write was
	Joins <-chan struct{} // closed when a risky write that waits to be sent apart may join a group after all; nil: never

	givenUp atomic.Bool   // see GiveUp
	sent    atomic.Bool   // it is in a group
	left    chan struct{} // of a risky write; closed by GiveUp

	Ctx      context.Context // the caller's, for hooks only: a group runs on the session's context
	Done     chan struct{}   // closed once the fields below are set
	Results  []driver.OpResult
	Err      error
	Children []int32 // if Creates is set: each parent's number of children, -1 where that is not known
}

// GiveUp says that nothing waits for w any longer. If w was not sent, it never is, and fails with
// driver.ErrNotSent. Else it is answered as any other write.
func (w *Write) GiveUp() {
	if !w.givenUp.Swap(true) && w.left != nil {
		close(w.left)
	}
}

// Sent reports whether w was sent, or is about to be.
func (w *Write) Sent() bool { return w.sent.Load() }

// Newcomers are the contenders that a write creates, each below another znode.
type Newcomers interface {
	// Settle records the nodes that w has created. It returns each znode's number of
	// children, -1 where that is not known.
	Settle(w *Write) []int32
}

// committer sends the writes of one session, in groups. A write that arrives while fewer
// than two transactions are under way is sent at once, together with those that other
// goroutines are about to submit. Writes that arrive while two are under way are sent together
// in the next transaction, but for a create below a znode where one of these creates: see launch. No write waits for a timer.
//
// Invariants:
//   - A group has at most one create below a znode: contenders that one transaction creates
//     have the same zxid, and so would have equal tokens.
//   - Deletes are in front of creates, so that a create's count of children does not include
//     nodes that the same transaction removes.
//   - A member is answered exactly once, with the ensemble's answer about its own operations.
//     When a group fails, none of it was applied: the member at fault gets the error, and the
//     others are sent again. If that member is risky, the other risky members leave the group:
//     each might make it fail once more, and the rest would wait for all of these transactions.
//   - If the outcome of a group is unknown, so is the outcome of every member.
//   - A write that was given up before its group was made is not sent. So a burst of callers that
//     have left holds up no later write.
//   - The error of a member is about its own operations. A group that is too large is sent as two.
type committer struct {
	multi func(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error)
	most  func() int      // of a group; it locks nothing; nil: maxGroupBytes
	ctx   context.Context // the session's
	wg    *sync.WaitGroup // the session's; joined after ctx has ended
	lone  chan struct{}   // the session's

	mu      mutex.Mutex[mutex.Inner]
	pending []*Write // guarded by mu
	flights int      // guarded by mu

	creating []string // the znodes below which groups under way create, once for each create; guarded by mu
	closed   bool     // guarded by mu; Submit refuses writes
}

// Submit queues w and returns at once; w.Done is closed when w is answered. If the committer is
// closed, w fails with driver.ErrClosed.
// Until w.Joins is closed, a risky write has a transaction of its own, so that no other write is
// sent again because of it: see sendApart.
func (c *committer) Submit(w *Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Done = make(chan struct{})
	if c.closed {
		w.Err = driver.ErrClosed
		close(w.Done)
		return
	}
	if w.Risky {
		w.left = make(chan struct{})
		select {
		case <-w.Joins:
		default:
			c.sendApart(w)
			return
		}
	}
	c.enqueue(w)
}

// backlog returns how many writes are pending.
func (c *committer) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// enqueue adds w to the pending writes. The caller holds mu.
func (c *committer) enqueue(w *Write) {
	c.pending = append(c.pending, w)
	c.launch(w)
}

// launch begins a flight for pending writes, one of which is w, if fewer than maxFlights are under way, or if w creates below a znode
// where a group under way does. The caller holds mu.
func (c *committer) launch(w *Write) {
	rivals := func(op driver.Op) bool { return slices.Contains(c.creating, queueOf(op)) }
	if c.flights < maxFlights || c.flights < maxCreates && slices.ContainsFunc(w.Ops, rivals) {
		c.flights++
		c.wg.Go(c.fly)
	}
}

// sendApart sends a risky write in the background, as one of at most MaxLone lone requests. If it is
// given up before its turn, it is not sent. If risky writes may share transactions by then, it joins a
// group: else the last of ten thousand writes would wait for as many transactions.
func (c *committer) sendApart(w *Write) {
	c.wg.Go(func() {
		select {
		case c.lone <- struct{}{}:
			defer func() { <-c.lone }()
		case <-w.Joins:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.enqueue(w)
			return
		case <-w.left:
			answer([]*Write{w}, driver.ErrNotSent)
			return
		case <-c.ctx.Done(): // the write is answered without a request
		}
		c.Apart([]*Write{w})
	})
}

// Apart sends writes in groups that no other caller's writes join. It returns when all of
// them are answered.
func (c *committer) Apart(writes []*Write) {
	apart := committer{multi: c.multi, most: c.most, ctx: c.ctx, pending: writes}
	for group := apart.next(); group != nil; group = apart.next() {
		apart.send(group)
	}
}

// close makes Submit refuse further writes. Pending ones are still answered; if ctx has ended,
// soon and without a request.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// fly sends groups until nothing is pending.
//
// Before each group it lets other goroutines run. The answers to one group wake many goroutines
// that submit their next writes at once, and the first of these writes must not be sent alone. If
// no other goroutine can run, this costs almost nothing.
func (c *committer) fly() {
	for {
		runtime.Gosched()
		c.mu.Lock()
		group := c.next()
		under := queuesOf(group)
		c.creating = append(c.creating, under...)
		if group == nil {
			c.flights--
		} else if len(c.pending) > 0 {
			c.launch(c.pending[0])
		}
		c.mu.Unlock()
		if group == nil {
			return
		}
		c.send(group)
		c.mu.Lock()
		for _, queue := range under {
			i := slices.Index(c.creating, queue)
			c.creating = slices.Delete(c.creating, i, i+1)
		}
		c.mu.Unlock()
	}
}

// next takes the next group from the pending writes; nil if there are none. It drops those that were given
// up. The caller holds mu.
func (c *committer) next() []*Write {
	c.pending = slices.DeleteFunc(c.pending, func(w *Write) bool {
		givenUp := w.givenUp.Load()
		if givenUp {
			answer([]*Write{w}, driver.ErrNotSent)
		}
		return givenUp
	})
	group := c.group()
	for _, w := range group {
		w.sent.Store(true)
	}
	return group
}

// group takes as many of the pending writes as may be sent together. The caller holds mu.
func (c *committer) group() []*Write {
	if len(c.pending) <= 1 {
		group := c.pending
		c.pending = nil
		return group
	}
	var group, creates, rest []*Write
	bytes, most := 0, c.bound()
	creating := make(map[string]bool, len(c.pending))
	for i, w := range c.pending {
		size := sizeOf(w.Ops)
		if len(group)+len(creates) > 0 && bytes+size > most {
			rest = append(rest, c.pending[i:]...)
			break
		}
		switch {
		case w.Creates == nil:
			group = append(group, w)
		case slices.ContainsFunc(w.Ops, func(op driver.Op) bool { return creating[queueOf(op)] }):
			rest = append(rest, w)
			continue
		default:
			for _, op := range w.Ops {
				if queue := queueOf(op); queue != "" {
					creating[queue] = true
				}
			}
			creates = append(creates, w)
		}
		bytes += size
	}
	c.pending = rest
	return append(group, creates...)
}

// bound returns the size of groups.
func (c *committer) bound() int {
	if c.most == nil {
		return maxGroupBytes
	}
	return c.most()
}

// queuesOf returns the znodes below which a group creates contenders.
func queuesOf(group []*Write) (all []string) {
	for _, w := range group {
		for _, op := range w.Ops {
			if queue := queueOf(op); queue != "" {
				all = append(all, queue)
			}
		}
	}
	return all
}

// queueOf returns the znode that an operation creates a contender below; "" if it creates none.
func queueOf(op driver.Op) string {
	if op.Kind != driver.OpCreate || op.Mode != driver.EphemeralSequential {
		return ""
	}
	return op.Path[:strings.LastIndexByte(op.Path, '/')]
}

// send runs a group's transaction and answers its members. After a failure it answers the
// member at fault and sends the rest again; after a few failures as two halves, each in the same
// way. So the number of times that a member is sent grows only with the logarithm of the group's
// size, even if very many members are at fault.
func (c *committer) send(group []*Write) {
	const few = 3
	for faults := 0; len(group) > 0; {
		if faults == few && len(group) > 1 {
			c.sendHalves(group)
			return
		}
		err := driver.ErrClosed // the session is over
		if c.ctx.Err() == nil {
			err = c.transact(group)
		}
		if len(group) > 1 && errors.Is(err, driver.ErrTooLarge) { // nothing was sent, and the members are not at fault
			c.sendHalves(group)
			return
		}
		guilty := slices.IndexFunc(group, func(w *Write) bool { return AtFault(w.Results) >= 0 })
		if guilty < 0 { // the group was applied, or the error is about all of it
			answer(group, err)
			return
		}
		w := group[guilty]
		answer(group[guilty:guilty+1], w.Results[AtFault(w.Results)].Err)
		group = slices.Delete(group, guilty, guilty+1)
		if w.Risky {
			group = c.setApart(group)
		}
		faults++
	}
}

// sendHalves sends a group as two.
func (c *committer) sendHalves(group []*Write) {
	half := len(group) / 2
	c.send(group[:half:half])
	c.send(group[half:])
}

// setApart sends the risky members of a group apart, for good, and returns the others.
func (c *committer) setApart(group []*Write) []*Write {
	return slices.DeleteFunc(group, func(w *Write) bool {
		if w.Risky {
			w.Results, w.Joins = nil, nil
			c.sendApart(w)
		}
		return w.Risky
	})
}

// transact runs one transaction for a group. It gives each member its results; none if not all
// results are known.
func (c *committer) transact(group []*Write) error {
	ctx, kind, ops := group[0].Ctx, group[0].Kind, group[0].Ops
	for i, w := range group[1:] {
		if i == 0 {
			ctx, ops = c.ctx, append(make([]driver.Op, 0, 2*len(group)), ops...)
		}
		if ops = append(ops, w.Ops...); w.Kind != group[0].Kind {
			kind = "commit"
		}
	}
	results, err := c.multi(ctx, kind, len(group), ops)
	known := len(results) == len(ops)
	for _, w := range group {
		if w.Results = nil; known {
			w.Results, results = results[:len(w.Ops):len(w.Ops)], results[len(w.Ops):]
		}
	}
	return err
}

// answer gives a group its error, records what its transaction has created, and then wakes those that
// wait for it.
func answer(group []*Write, err error) {
	for _, w := range group {
		if w.Err = err; err == nil && w.Creates != nil {
			w.Children = w.Creates.Settle(w)
		}
	}
	for _, w := range group {
		close(w.Done)
	}
}
