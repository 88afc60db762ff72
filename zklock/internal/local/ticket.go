package local

import (
	"container/list"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// ticket is one goroutine's entry in a local queue, or at the gate. The answer that it waits for is a hold,
// or else the lead, perhaps with a place to begin with.
type ticket struct {
	r        *Request
	since    time.Time
	at       *list.Element   // guarded by the queue's mu; nil if the answer was sent, or is about to be
	reserved bool            // guarded as at; an agent is about to grant it a place
	passed   int             // at the gate: how often others that came later were let through before it; guarded as at
	also     []*list.Element // at the gate, where it waits for further names; guarded as at

	answered chan struct{} // closed when the next three are set
	start    *place.Place
	granted  bool // the request has a hold
	refused  bool // it is a try's, and there is another contender: neither hold nor lead

	met         bool            // guarded by the queue's mu; it is the leader's, and has met another contender on the session of desk
	waits       bool            // guarded by the queue's mu; it is the leader's, and has to wait for other contenders
	desk        *place.Desk     // guarded by the queue's mu; it is the leader's: the session that it asks on; nil: it has none yet
	patience    *patience       // set when it is queued; of the callers that it waits among
	deadline    time.Time       // guarded by the queue's mu; of the caller's context; zero: it has none, or does not wait yet
	leaderWaits <-chan struct{} // set when it is made; see leaderWaitsLocked
}

// newTicket returns the ticket of a request that is not in the queue yet.
func newTicket(r *Request) *ticket {
	return &ticket{r: r, answered: make(chan struct{}), since: time.Now()}
}

// answer sends the ticket its answer.
func (tk *ticket) answer(granted bool, start *place.Place) {
	tk.granted, tk.start = granted, start
	close(tk.answered)
}

// maxPatience is at how many tickets nextOf looks for one that is likely to stay. Each of thousands that leave at once
// may look.
const maxPatience = 1000

// nextOf returns the ticket of a list that is next, among those that fit; nil if none does. leads says that it does
// not get the lock at once. The mutex of the list is held.
func nextOf(waiters *list.List, leads bool, fits func(*ticket) bool) (next *ticket) {
	var now time.Time
	looks := 0
	for at := waiters.Front(); at != nil; at = at.Next() {
		tk := at.Value.(*ticket)
		if tk.reserved || !fits(tk) { // TestReservedTicketIsNotNext
			continue
		}
		p := tk.patience
		if tk.r.Try || !p.tested.Load() {
			return tk
		}
		if now.IsZero() {
			now = time.Now()
		}
		lead := time.Duration(0)
		if leads {
			lead = *p.leadOf(tk.r)
		}
		if !p.pressedLocked(now) || p.suffices(tk.since, tk.deadline, lead, now) {
			return tk
		}
		if next == nil || leads && len(tk.r.Wants) > 1 { // no other can go on with its place
			next = tk
		}
		if looks++; looks == maxPatience {
			break
		}
	}
	return next
}

// leavesIfPanics calls f, which calls a hook. If that panics, a ticket leaves its queue: the caller may recover, and
// would never take the answer.
func leavesIfPanics(f, leave func()) {
	returns := false
	defer func() {
		if !returns {
			leave()
		}
	}()
	f()
	returns = true
}
