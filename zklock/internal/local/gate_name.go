package local

import (
	"container/list"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// separate is what the gate knows of a name.
type separate struct {
	permits int32        // guarded by the gate's mu; the least number that what was let through asks for; 0: it is not for permits
	differ  bool         // guarded by the gate's mu; requests may ask for different numbers of permits
	through []admission  // guarded by the gate's mu; what was let through
	one     [1]admission // the array of through at first
	crowd   *crowd       // guarded by the gate's mu; made when something has to wait
}

// admission is what was let through on a name.
type admission struct {
	r    *Request      // nil: hold is live. Then the admission must not keep the caller's Lock from being collected
	hold *Hold         // the newest that was made for it; nil: it has had no turn yet
	at   *waitingPlace // where it waits in ZooKeeper's queue; nil: it does not, as far as is known
}

// crowd is what waits for a name at the gate.
type crowd struct {
	line           list.List // guarded by the gate's mu; of *ticket
	several        int       // guarded by the gate's mu; how many of them want several names
	takers         int       // guarded by the gate's mu; how many of them take room: readers share a turn
	readers        int       // guarded by the gate's mu; how many of what was let through are readers that are under way
	batch          int       // guarded by the gate's mu; how many readers were let through since a writer was
	agents         []*agent  // guarded by the gate's mu; those that go on with places whose first name it is
	patience       patience  // guarded by the gate's mu; of the callers whose first name it is
	noSessionSince time.Time // guarded by the gate's mu; see Queue.noSessionSince
}

// isIdle reports whether a name may be forgotten: nothing was let through or waits, and no caller has given up of late.
func (s *separate) isIdle(now time.Time) bool {
	c := s.crowd
	return len(s.through) == 0 && (c == nil || c.line.Len() == 0 && len(c.agents) == 0 && !c.patience.pressedLocked(now))
}

// want returns what was let through wants of a name.
func (e *admission) want(path string) *place.Want {
	wants := []place.Want(nil)
	if e.r != nil {
		wants = e.r.Wants
	} else {
		wants = e.hold.wants
	}
	return &wants[slices.IndexFunc(wants, func(w place.Want) bool { return w.Path == path })]
}

// maxReaders is how many readers of a name are under way at a time while callers give up. A session creates two nodes of
// a name in a round trip (see session.committer), and a reader that is not alone looks at the queue in another one. The
// nodes of more would come too late.
const maxReaders = 4

// maxBatch is how many readers are let through before a writer that waits while callers give up.
const maxBatch = 16

// hasRoom reports whether one more may be let through on a name, if the hold instead was gone: see isFull.
func (s *separate) hasRoom(w *place.Want, instead *Hold, limit int) bool {
	if !counts(w) {
		return (s.readers() < maxReaders || !s.pressed()) && !slices.ContainsFunc(s.through, func(e admission) bool { // TestFewReadersThatGiveUpHaveNodes
			return (instead == nil || e.hold != instead) && e.want(w.Path).Kind.Mode.Excludes(w.Kind.Mode)
		})
	}
	return !s.isFull(instead, limit) && !s.prefersReaders()
}

// limit returns how many may hold with a request of what takes room: of permits the least number that it, those that were let
// through, and those that wait ahead of a ticket ask for. nil is the end of the line.
func (s *separate) limit(w *place.Want, end *ticket) int {
	n := max(w.Kind.Permits, 1)
	if n == 1 || !s.differ || s.crowd == nil {
		return n
	}
	for at := s.crowd.line.Front(); at != nil && at.Value != end && n > len(s.through); at = at.Next() {
		n = at.Value.(*ticket).lowers(n)
	}
	return n
}

// lowers returns the limit of those that wait behind a ticket, if it was n before. One that wants several names wants permits of none.
func (tk *ticket) lowers(n int) int {
	if permits := tk.r.Wants[0].Kind.Permits; permits > 0 {
		n = min(n, permits)
	}
	return n
}

// asksFor notes that numbers of permits may differ from now on, if those of a request do. When nothing is left, one number is expected again.
func (s *separate) asksFor(w *place.Want) {
	if len(s.through) == 0 && (s.crowd == nil || s.crowd.line.Len() == 0) {
		s.differ = false
	} else if int(s.permits) != w.Kind.Permits {
		s.differ = true
	}
}

// isFull reports whether as many were let through as can hold together, up to a limit that is at most what was let through asks for.
func (s *separate) isFull(instead *Hold, limit int) bool {
	through := len(s.through) - s.readers()
	if instead != nil && slices.ContainsFunc(s.through, func(e admission) bool { return e.hold == instead }) {
		through--
	}
	if s.permits > 0 {
		limit = min(limit, int(s.permits))
	}
	return through >= limit
}

// pressed reports whether callers of a name give up at present.
func (s *separate) pressed() bool {
	return s.crowd != nil && s.crowd.patience.pressedLocked(time.Now())
}

// readers returns how many of what was let through are readers that are under way.
func (s *separate) readers() int {
	if s.crowd == nil {
		return 0
	}
	return s.crowd.readers
}

// prefersReaders reports whether a writer has to wait for readers that are under way, so that others can hold with them:
// for their requests only, and never while they wait for another contender.
func (s *separate) prefersReaders() bool {
	c := s.crowd
	return c != nil && c.readers > 0 && c.batch < maxBatch && c.takers < c.line.Len() && s.pressed() && // TestReadersThatGiveUpStarveNoWriter
		slices.ContainsFunc(s.through, func(e admission) bool { return e.r != nil && e.at == nil })
}
