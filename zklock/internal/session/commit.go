package session

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Limits of group commit. Two transactions under way keep the server's
// pipeline full; more only make the groups smaller.
const (
	maxFlights    = 2
	maxGroupBytes = 256 << 10
)

// Write is what one caller wants changed by the ensemble: a member of a group.
type Write struct {
	Kind    string      // for the Operation hook
	Ops     []driver.Op // in order
	Creates Entry       // the contenders that Ops create; nil if none

	Ctx      context.Context // of the caller, for hooks only: a group runs on the session's
	Done     chan struct{}   // closed once the fields below are set
	Results  []driver.OpResult
	Err      error
	Children []int32 // of a creation: each parent's count, -1 where that is not known
}

// Entry is what a write creates: contenders, one below each of some znodes.
type Entry interface {
	// Below reports whether one is created below a znode of any in set, and Add has
	// them in it.
	Below(set map[string]bool) bool
	Add(set map[string]bool)

	// SettleLocked takes over what was created. It returns each znode's count of
	// children, -1 where that is not known. The session's mu is held.
	SettleLocked(w *Write) []int32
}

// committer sends the writes of one session, in groups. A write that arrives
// while fewer than two transactions are under way is sent at once, with those of
// other goroutines that are about to submit theirs; what arrives meanwhile goes
// out together in the next one. Nobody waits for a timer.
//
// Invariants:
//   - A group has at most one create below a znode: contenders created by one
//     transaction have one zxid, and so would have equal tokens.
//   - Deletes come before creates, so that a create's count of children does
//     not include nodes that the same transaction removes.
//   - A member is answered exactly once, with what the ensemble said about its
//     own operations. When a group fails, nothing of it was applied: the member at
//     fault gets the error, and the others are sent again as one group, or as two
//     once several were at fault.
//   - An unknown outcome of a group is an unknown outcome of every member.
type committer struct {
	multi  func(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error)
	settle func(group []*Write) // takes over what was created, before the members are answered
	ctx    context.Context      // the session's
	wg     *sync.WaitGroup      // the session's; joined after ctx has ended

	mu      sync.Mutex
	pending []*Write // guarded by mu
	flights int      // guarded by mu
	closed  bool     // guarded by mu; nothing is sent any more
}

// Submit queues w and returns at once; w.Done tells when w is answered.
func (c *committer) Submit(w *Write) {
	w.Done = make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		w.Err = driver.ErrClosed
		close(w.Done)
		return
	}
	c.pending = append(c.pending, w)
	if c.flights == maxFlights {
		return
	}
	c.flights++
	c.wg.Go(c.fly)
}

// Apart sends writes that create nothing, in groups of which none has a member
// of any other caller. It returns when all are answered.
func (c *committer) Apart(writes []*Write) {
	apart := committer{multi: c.multi, settle: func([]*Write) {}, ctx: c.ctx, pending: writes}
	for group := apart.next(); group != nil; group = apart.next() {
		apart.send(group)
	}
}

// close refuses what is submitted from now on. What is pending still gets its
// answer, soon if ctx has ended.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// fly sends groups until nothing is pending.
//
// It lets other goroutines go first each time: the answers to one group wake many
// that have something to send at once, and the first of them must not take a
// flight for itself while the others are on their way here. When nothing else can
// run, this costs next to nothing.
func (c *committer) fly() {
	for {
		runtime.Gosched()
		c.mu.Lock()
		group := c.next()
		if group == nil {
			c.flights--
		}
		c.mu.Unlock()
		if group == nil {
			return
		}
		c.send(group)
	}
}

// next takes the next group from what is pending; nil if that is nothing. The
// caller holds mu.
func (c *committer) next() []*Write {
	if len(c.pending) == 0 {
		return nil
	}
	if len(c.pending) == 1 {
		group := c.pending
		c.pending = nil
		return group
	}
	var group, creates, rest []*Write
	bytes := 0
	creating := make(map[string]bool, len(c.pending))
	for i, w := range c.pending {
		size := sizeOf(w.Ops)
		if len(group)+len(creates) > 0 && bytes+size > maxGroupBytes {
			rest = append(rest, c.pending[i:]...)
			break
		}
		switch {
		case w.Creates == nil:
			group = append(group, w)
		case w.Creates.Below(creating):
			rest = append(rest, w)
			continue
		default:
			w.Creates.Add(creating)
			creates = append(creates, w)
		}
		bytes += size
	}
	c.pending = rest
	return append(group, creates...)
}

// opOverhead is about what an operation takes on the wire besides path and
// data: headers, lengths, version, an access list.
const opOverhead = 64

func sizeOf(ops []driver.Op) int {
	n := 0
	for i := range ops {
		n += opOverhead + len(ops[i].Path) + len(ops[i].Data)
	}
	return n
}

// send runs a group's transaction and answers its members. A member at fault costs one
// more transaction, for the rest of the group. Where there are more than a few, the rest
// is halved each time, so that very many cost no more than each a few times.
func (c *committer) send(group []*Write) {
	const few = 3
	for faults := 0; len(group) > 0; {
		if faults == few && len(group) > 1 {
			half := len(group) / 2
			c.send(group[:half:half])
			c.send(group[half:])
			return
		}
		if c.ctx.Err() != nil { // nothing is sent any more, and no hook called for it
			for _, w := range group {
				w.Err = driver.ErrClosed
			}
			c.answer(group)
			return
		}
		results, err := c.transact(group)
		guilty := -1
		if known := len(results) == opCount(group); err != nil && known {
			guilty = slices.IndexFunc(group, func(w *Write) bool { return AtFault(w.Results) != nil })
		}
		if guilty < 0 { // it was applied, or its outcome is every member's
			for _, w := range group {
				w.Err = err
			}
			c.answer(group)
			return
		}
		w := group[guilty]
		w.Err = AtFault(w.Results)
		c.answer(group[guilty : guilty+1])
		group = slices.Delete(group, guilty, guilty+1)
		faults++
	}
}

// transact runs one transaction for a group and gives each member its results, if
// they are known.
func (c *committer) transact(group []*Write) ([]driver.OpResult, error) {
	if len(group) == 1 {
		w := group[0]
		var err error
		w.Results, err = c.multi(w.Ctx, w.Kind, 1, w.Ops)
		return w.Results, err
	}
	ops := make([]driver.Op, 0, opCount(group))
	for _, w := range group {
		ops = append(ops, w.Ops...)
	}
	results, err := c.multi(c.ctx, groupKind(group), len(group), ops)
	rest, known := results, len(results) == len(ops)
	for _, w := range group {
		if w.Results = nil; known {
			w.Results, rest = rest[:len(w.Ops):len(w.Ops)], rest[len(w.Ops):]
		}
	}
	return results, err
}

func opCount(group []*Write) (n int) {
	for _, w := range group {
		n += len(w.Ops)
	}
	return n
}

// answer tells the members of a group that their fields are set.
func (c *committer) answer(group []*Write) {
	c.settle(group)
	for _, w := range group {
		close(w.Done)
	}
}

// AtFault returns the error of the operation that made a transaction fail, if
// it is among results.
func AtFault(results []driver.OpResult) error {
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, driver.ErrRolledBack) {
			return r.Err
		}
	}
	return nil
}

func groupKind(group []*Write) string {
	for _, w := range group[1:] {
		if w.Kind != group[0].Kind {
			return "commit"
		}
	}
	return group[0].Kind
}
