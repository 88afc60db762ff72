package place

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// identified is a driver's session that only knows its id and its timeout.
type identified struct {
	driver.Session
	id      int64
	timeout time.Duration
}

func (s identified) ID() int64              { return s.id }
func (s identified) Timeout() time.Duration { return s.timeout }

// lineOf returns a line with no list yet, of a session with the id 1.
func lineOf() *line {
	desk := &Desk{Session: session.Inert(context.Background(), identified{id: 1}), Shared: NewShared(&NodeSettings{Dialect: queue.Default}), enqueued: map[uint64]*ownNode{}, peers: map[string][]queue.Node{}}
	return &line{p: &Place{Desk: desk}, c: &ownNode{dir: "/orders"}, sight: Sight{Gen: 7}}
}

// nodesOf returns the nodes of a session's contenders, which queue behind q.
func nodesOf(q []queue.Node, session int64, many int, mode queue.Mode) []queue.Node {
	for range many {
		n, k := len(q)+1, queue.Kind{Mode: mode}
		g := queue.GUID{Session: session, Serial: uint64(n)}
		q = append(q, queue.Node{GUID: g, Kind: k, Seq: int64(n), Name: fmt.Sprintf("%s%010d", queue.Default.Prefix(g, k), n)})
	}
	return q
}

// register makes the contenders of the nodes those of the line's session.
func register(l *line, q []queue.Node) {
	for _, o := range q {
		c := &ownNode{dir: l.c.dir, guid: o.GUID}
		c.path = c.dir + "/" + o.Name
		l.p.Desk.enqueued[o.GUID.Serial] = c
	}
}

// An event counts together with reads on the same connection only: another connection's
// server may lag behind the event.
func TestLineThatWasHeardIsListedAgainElsewhere(t *testing.T) {
	fresh := func() *line {
		l := lineOf()
		l.reset(nodesOf(nil, 2, 2, queue.Exclusive), 1)
		l.sight, l.watched = Sight{Gen: 7}, l.others
		return l
	}
	for _, c := range []struct {
		what    string
		byEvent bool
		gen     uint64
		keeps   bool
	}{
		{"an event, and a read on its connection", true, 7, true},
		{"an event, and a read on another connection", true, 8, false},
		{"an event, and a read on an uncertain connection", true, 0, false},
		{"a read, and one on another connection", false, 8, true},
	} {
		l := fresh()
		l.removeGone(0, 7, c.byEvent)
		if kept := l.seen(c.gen, true) && l.walk() != nil; kept != c.keeps {
			t.Errorf("%s: the line is kept: %v, want %v", c.what, kept, c.keeps)
		}
		if c.keeps && l.sight.ByEvent {
			t.Errorf("%s: after the read the line still counts as known from an event", c.what)
		}
		if l := fresh(); c.byEvent {
			if l.removeGone(0, 7, true); l.seen(7, false) && !l.sight.ByEvent {
				t.Errorf("%s: a watch that was armed before the event counts as a read after it", c.what)
			}
		}
	}
}

// An event that the one ahead is gone shows the turn of a waiter only if the list showed no other ahead: not even
// one that it need not wait for.
func TestSoleContenderAhead(t *testing.T) {
	for _, c := range []struct {
		what             string
		readers, writers int
		want             bool
	}{
		{"none", 0, 0, false},
		{"a writer", 0, 1, true},
		{"a reader", 1, 0, true},
		{"two writers", 0, 2, false},
		{"a reader and a writer", 1, 1, false},
	} {
		l := lineOf()
		if l.reset(nodesOf(nodesOf(nodesOf(nil, 2, c.readers, queue.Shared), 2, c.writers, queue.Exclusive), 1, 1, queue.Shared), c.readers+c.writers); l.sole != c.want {
			t.Errorf("behind %s: sole: %v, want %v", c.what, l.sole, c.want)
		}
	}
}

// Another program has created a node with the sequence number of one of the queue's. Which of
// the two is ahead of the other is not known, so the line is listed again after each event.
func TestLineWithTwoOfOneNumberIsNotKnown(t *testing.T) {
	for _, twin := range []int{-1, 0, 1} {
		l := lineOf()
		q := nodesOf(nodesOf(nil, 2, 2, queue.Exclusive), 1, 1, queue.Shared)
		if twin >= 0 {
			q[twin].Seq = q[twin+1].Seq
		}
		if l.reset(q, len(q)-1); l.known != (twin < 0) || l.known != (len(l.others) > 0) {
			t.Errorf("twin of node %d: known %v, %d others", twin, l.known, len(l.others))
		}
	}
}

// A waiter walks a line only while few contenders in it still block the waiter, whether the
// session knows them as its own or not. No line is walked past a node of another recipe, which
// may have been replaced by another node.
func TestLineIsWalkedWhileItIsShort(t *testing.T) {
	for _, c := range []struct {
		readers, writers int // ahead of the one to watch, which is a writer
		self             queue.Mode
		walks            bool
	}{
		{0, 0, queue.Exclusive, true},
		{0, 1, queue.Exclusive, false},
		{1, 0, queue.Exclusive, false},
		{0, maxWalkedByReader, queue.Shared, true},
		{0, maxWalkedByReader + 1, queue.Shared, false},
		{1000, 0, queue.Shared, true},
		{9979, 20, queue.Shared, true},
		{9978, 21, queue.Shared, false},
	} {
		for _, of := range []int64{1, 2} { // the line's session, and another one
			l := lineOf()
			q := nodesOf(nodesOf(nil, of, c.writers, queue.Exclusive), of, c.readers, queue.Shared)
			q = nodesOf(q, of, 1, queue.Exclusive)
			if of == 1 {
				register(l, q)
			}
			next := q[len(q)-1]
			l.reset(nodesOf(q, 1, 1, c.self), len(q))
			l.watched = []queue.Node{next}
			if l.removeGone(0, 7, false); of == 1 {
				l.p.Desk.removePeerLocked(l.p.Desk.enqueued[next.GUID.Serial])
			}
			if left := l.walk(); (left != nil) != c.walks {
				t.Errorf("a %v contender, with %d writers and %d readers of session %d left ahead: walks the line: %v, want %v", c.self, c.writers, c.readers, of, left != nil, c.walks)
			} else if want := len(q) - 1; c.walks && l.ahead != want {
				t.Errorf("a %v contender, with %d writers and %d readers of session %d left ahead: counts %d ahead", c.self, c.writers, c.readers, of, l.ahead)
			}
		}
	}
	l := lineOf()
	q := nodesOf(nil, 2, 3, queue.Exclusive)
	q[1].GUID = queue.GUID{}
	l.reset(q, len(q)-1)
	l.watched = q[1:2]
	if l.removeGone(0, 7, false); l.walk() != nil {
		t.Error("a line is walked past a node of another recipe")
	}
}

// A line takes its own session's contenders from Desk.peers, so the waiter need not ask whether one
// of them has left. The memory of many waiters does not grow with the line: no waiter has a copy of
// what is in Desk.peers.
func TestLineSharesItsSessionsContenders(t *testing.T) {
	first := lineOf()
	desk := first.p.Desk
	q := nodesOf(nil, 1, 100, queue.Exclusive)
	register(first, q)
	for i := range q[1:] {
		l := &line{p: first.p, c: first.c}
		l.reset(q[:i+2], i+1)
		if len(l.others) > 0 {
			t.Fatalf("waiter %d keeps %d contenders of its own session", i, len(l.others))
		}
	}
	if got := len(desk.peers["/orders"]); got != 99 {
		t.Errorf("the session keeps %d of its contenders, want one for each that is ahead of another: 99", got)
	}
	l := lineOf()
	l.p = first.p
	q[99].Kind.Mode = queue.Shared // a reader's line is walked
	l.reset(q, len(q)-1)
	l.watched = q[98:99]
	for _, o := range q[1:99] {
		desk.removePeerLocked(desk.enqueued[o.GUID.Serial])
	}
	l.removeGone(0, 7, true)
	if left := l.walk(); len(left) != 2 || left[0].Name != q[0].Name {
		t.Errorf("the line is %v after all but the first have left, want that one and our own node", left)
	}
	desk.removePeerLocked(desk.enqueued[q[0].GUID.Serial])
	if len(desk.peers) != 0 {
		t.Errorf("the session keeps %v of a name that none of its contenders waits for", desk.peers)
	}
}
