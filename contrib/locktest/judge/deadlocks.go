package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Deadlocks are what a history of philosophers shows: clients that take a second lock while they hold a first
// one. A circle is a group of waits each of which waits for a lock that the next one's client holds.
//
// A lock is held from when its grant was read until its release is requested, and a wait lasts from the request
// until the answer was read. A client that waits cannot release. So each circle that the judge sees was one,
// however late messages are.
type Deadlocks struct {
	// Meals is how often a client got its second lock.
	Meals int

	// Circles is how many circles there were.
	Circles int

	// Broken is how many circles the library ended by the failure of exactly one of their waits.
	Broken int

	// Several is how many circles had more than one wait that failed.
	Several int

	// GivenUp is how many circles lasted until a client gave up.
	GivenUp int

	// Lost is how many circles ended because a member lost its lock, or its process ended by a fault.
	Lost int

	// Granted is how many circles ended because a wait was granted, though the lock was held.
	Granted int

	// Open is how many circles had not ended when the history did.
	Open int

	// False is how many acquisitions failed that were in no circle, though their client had lost nothing.
	False int

	// Times are the times from when a circle closed until the first of its waits failed, in rising order.
	Times []time.Duration
}

// ending is how a circle has ended.
type ending int

const (
	open    ending = iota
	failed         // the library failed a wait
	givenUp        // a client gave up
	lost           // a member is lost
	granted        // a wait was granted
)

// circle is a circle of waits.
type circle struct {
	closed  int64
	ending  ending
	victims int // waits that failed
	members []*request
}

// request is an acquisition that has no answer yet.
type request struct {
	history.Event
	circle *circle // the newest one that it was in; nil: none
}

// table is what is known at a point of a history.
type table struct {
	Deadlocks
	circles  []*circle
	requests map[int]*request
	holders  map[string]history.Event // the grants of the locks that are held, by name
	within   map[int]int              // the acquisition whose lock the client of one holds; 0: none
	lost     map[int]bool             // acquisitions that were lost after their grant
}

// MeasureDeadlocks judges a history of philosophers.
func MeasureDeadlocks(events []history.Event) Deadlocks {
	t := &table{requests: make(map[int]*request), holders: make(map[string]history.Event), within: make(map[int]int), lost: make(map[int]bool)}
	for _, e := range events {
		r := t.requests[e.ID]
		switch e.Kind {
		case history.Acquire:
			t.ask(&request{Event: e})
		case history.Granted:
			if r != nil {
				t.grant(r, e)
			}
		case history.Failed:
			if r != nil { // else a release has failed
				t.fail(r, e)
			}
		case history.Lost:
			t.lose(e)
		case history.Release:
			t.free(func(h history.Event) bool { return h.ID == e.ID })
		case history.Kill:
			t.kill(e)
		}
	}
	for _, c := range t.circles {
		t.count(c)
	}
	slices.Sort(t.Times)
	return t.Deadlocks
}

// ask notes a request, which may close a circle. No other event does, since a client requests its second lock
// after it holds the first one.
func (t *table) ask(r *request) {
	t.requests[r.ID] = r
	t.within[r.ID] = r.Holding
	var members []*request
	for at := r; at != nil && len(members) < len(t.requests); {
		members = append(members, at)
		if at = t.next(at); at == r {
			c := &circle{closed: r.At, members: members}
			for _, m := range members {
				m.circle = c
			}
			t.circles = append(t.circles, c)
			return
		}
	}
}

// next returns the request whose client holds what a request waits for; nil: there is none.
func (t *table) next(r *request) *request {
	holder, held := t.holders[r.Name]
	if !held {
		return nil
	}
	for _, o := range t.requests {
		if t.holds(o, holder.ID) {
			return o
		}
	}
	return nil
}

// holds reports whether the client of a request holds the lock of an acquisition.
func (t *table) holds(r *request, id int) bool {
	for at := r.Holding; at != 0; at = t.within[at] {
		if at == id {
			return true
		}
	}
	return false
}

func (t *table) grant(r *request, e history.Event) {
	delete(t.requests, r.ID)
	r.end(granted)
	t.holders[r.Name] = e
	if r.Holding != 0 {
		t.Meals++
	}
}

// fail judges the failure of an acquisition.
func (t *table) fail(r *request, e history.Event) {
	delete(t.requests, r.ID)
	hasLost := false
	for id := range t.lost {
		hasLost = hasLost || t.holds(r, id)
	}
	switch c := r.circle; {
	case hasLost:
		r.end(lost)
	case r.end(failed):
		c.victims++
		t.Times = append(t.Times, time.Duration(e.At-c.closed))
	case c != nil && c.ending == failed:
		c.victims++
	case c == nil || c.ending != lost: // a client may not know yet that another one has gone
		t.False++
	}
}

// lose notes that a client has lost a lock. Its wait for another one is in no circle from then on.
func (t *table) lose(e history.Event) {
	t.lost[e.ID] = true
	t.free(func(h history.Event) bool { return h.ID == e.ID })
	for _, r := range t.requests {
		if t.holds(r, e.ID) {
			r.end(lost)
		}
	}
}

// kill notes the end of a process.
func (t *table) kill(e history.Event) {
	why := lost
	if e.Reason == history.GivenUp {
		why = givenUp
	}
	for id, r := range t.requests {
		if r.Worker == e.Worker {
			delete(t.requests, id)
			r.end(why)
		}
	}
	t.free(func(h history.Event) bool { return h.Worker == e.Worker })
}

// free forgets holds.
func (t *table) free(which func(history.Event) bool) {
	for name, h := range t.holders {
		if which(h) {
			delete(t.holders, name)
		}
	}
}

// end ends the circle of a request, and reports whether that had not ended before.
func (r *request) end(how ending) bool {
	if r.circle == nil || r.circle.ending != open {
		return false
	}
	r.circle.ending = how
	return true
}

// count adds a circle to the figures.
func (t *table) count(c *circle) {
	t.Circles++
	switch {
	case c.ending == open:
		t.Open++
	case c.ending == givenUp:
		t.GivenUp++
	case c.ending == lost:
		t.Lost++
	case c.ending == granted:
		t.Granted++
	case c.victims == 1:
		t.Broken++
	default:
		t.Several++
	}
}

// Add adds the figures of another history.
func (d *Deadlocks) Add(o Deadlocks) {
	d.Meals += o.Meals
	d.Circles += o.Circles
	d.Broken += o.Broken
	d.Several += o.Several
	d.GivenUp += o.GivenUp
	d.Lost += o.Lost
	d.Granted += o.Granted
	d.Open += o.Open
	d.False += o.False
	d.Times = append(d.Times, o.Times...)
	slices.Sort(d.Times)
}

// Passed reports whether there were circles, each was ended by one failed wait, and no other acquisition failed.
// It leaves out circles with a loss, and those that had not ended.
func (d Deadlocks) Passed() bool {
	return d.Broken > 0 && d.Broken+d.Lost+d.Open == d.Circles && d.False == 0
}

// Time is the time that a part of all times does not exceed, as a text, or a dash.
func (d Deadlocks) Time(part float64) string {
	if len(d.Times) == 0 {
		return "-"
	}
	return d.Times[min(int(part*float64(len(d.Times))), len(d.Times)-1)].Round(10 * time.Millisecond).String()
}

// Table writes the figures, a line each, in the form of Markdown.
func (d Deadlocks) Table(title string) string {
	var b strings.Builder
	row := func(what string, value any) { fmt.Fprintf(&b, "| %-42s | %8v |\n", what, value) }
	row(title, "")
	fmt.Fprintf(&b, "|%s|%s:|\n", strings.Repeat("-", 44), strings.Repeat("-", 9))
	row("circles of waits", d.Circles)
	row("of these, one wait failed", d.Broken)
	row("several waits failed", d.Several)
	row("none failed until one was given up", d.GivenUp)
	row("a member lost its lock", d.Lost)
	row("a wait was granted", d.Granted)
	row("had not ended at the end", d.Open)
	row("from its closing to the first failure, p50", d.Time(0.5))
	row("p99", d.Time(0.99))
	row("failed without a circle", d.False)
	row("meals", d.Meals)
	return b.String()
}
