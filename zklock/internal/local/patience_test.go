package local

import (
	"container/list"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// An agent that is about to grant a place to a ticket has reserved it, and no other one gets that ticket.
func TestReservedTicketIsNotNext(t *testing.T) {
	var l list.List
	var p patience
	all := func(*ticket) bool { return true }
	first, second := &ticket{r: &Request{}, patience: &p}, &ticket{r: &Request{}, patience: &p}
	l.PushBack(first)
	l.PushBack(second)
	for _, want := range []*ticket{first, second, nil} {
		got := nextOf(&l, false, all)
		if got != want {
			t.Fatalf("next is %p, want %p of %p and %p", got, want, first, second)
		}
		if got != nil {
			got.reserved = true
		}
	}
}

// While it is not known for how long callers work, the first is next that has at least half of its time left.
func TestNextWhileTheWorkIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l list.List
		var p patience
		all := func(*ticket) bool { return true }
		for range 3 {
			l.PushBack(&ticket{r: &Request{}, patience: &p, since: time.Now()})
			time.Sleep(10 * time.Millisecond)
		}
		first, second, third := l.Front().Value, l.Front().Next().Value, l.Back().Value
		is := func(when string, want any) {
			t.Helper()
			if got := nextOf(&l, false, all); got != want {
				t.Errorf("%s: the next came at %v, want %v", when, got.since, want.(*ticket).since)
			}
		}
		is("while none has given up", first)
		p.leftLocked(&Request{ctx: context.Background()}, time.Now(), time.Now())
		is("after one at its deadline", first)
		second.(*ticket).deadline, first.(*ticket).deadline = time.Now().Add(25*time.Millisecond), time.Now().Add(25*time.Millisecond)
		is("with deadlines after 30 of 55 ms, and 20 of 45 ms", second)
		p.leftLocked(&Request{ctx: context.Background()}, time.Now().Add(-40*time.Millisecond), time.Time{})
		is("after one has left after 40 ms", third)
		p.workedLocked(time.Now().Add(-time.Millisecond))
		is("after one has worked for a millisecond", first)
		time.Sleep(pressedFor)
		is("when they have ceased to give up", first)
	})
}

// A place whose turn has come waits for a caller that is likely to stay, if one that came now would be, and for no longer
// than the work.
func TestPlaceWaitsForACallerThatStays(t *testing.T) {
	const work = 20 * time.Millisecond
	for _, tt := range []struct {
		name               string
		age, waits, leaves time.Duration // leaves: until its deadline; 0: it has none
		calm               bool
		want               time.Duration
	}{
		{name: "it is about to leave", age: 30 * time.Millisecond, waits: 40 * time.Millisecond, want: work},
		{name: "it has just come", age: time.Millisecond, waits: 40 * time.Millisecond},
		{name: "none stays for the work", age: 5 * time.Millisecond, waits: 10 * time.Millisecond},
		{name: "it has waited twice as long as those that left", age: 81 * time.Millisecond, waits: 40 * time.Millisecond},
		{name: "its deadline is near", age: 30 * time.Millisecond, leaves: 10 * time.Millisecond, want: work},
		{name: "its deadline is far", age: 30 * time.Millisecond, leaves: 30 * time.Millisecond},
		{name: "no deadline is far", age: 5 * time.Millisecond, leaves: 5 * time.Millisecond},
		{name: "callers do not give up", age: 30 * time.Millisecond, leaves: 10 * time.Millisecond, calm: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := patience{work: work, waits: tt.waits, leftAt: time.Now()}
				p.tested.Store(true)
				if tt.calm {
					time.Sleep(pressedFor)
				}
				tk := &ticket{r: &Request{}, patience: &p, since: time.Now().Add(-tt.age)}
				if tt.leaves > 0 {
					tk.deadline = time.Now().Add(tt.leaves)
				}
				if got := p.standbyLocked(tk, time.Now()); got != tt.want {
					t.Errorf("it waits for %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// Thousands of callers leave at once. Each looks at a bounded number of others for one that is likely to stay, and the
// agent looks at the end of a breath: once for all of them.
func TestThousandsLeaveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 5 * maxPatience
		var p patience
		p.leftLocked(&Request{ctx: context.Background()}, time.Now(), time.Now().Add(time.Hour))
		p.work = time.Minute
		c := &line{}
		for range callers {
			c.waiters.PushBack(&ticket{r: &Request{}, patience: &p, since: time.Now(), deadline: time.Now().Add(time.Second)})
		}
		a := &agent{crew: c, client: open{}, cancel: func() { c.ended = true }}
		c.Lock()
		for c.waiters.Len() > 0 {
			c.waiters.Remove(c.waiters.Front())
			a.reviewLocked()
			if c.waiters.Len() == callers/2 {
				c.Unlock()
				time.Sleep(2 * breath)
				c.Lock()
			}
		}
		c.Unlock()
		time.Sleep(2 * breath)
		c.Lock()
		defer c.Unlock()
		if !c.ended || c.looks > maxPatience+1 || c.reviews != 2 {
			t.Errorf("ended: %v, after %d looks in %d reviews; want two reviews", c.ended, c.looks, c.reviews)
		}
	})
}

// line is a crew that only waits.
type line struct {
	crew
	sync.Mutex
	waiters        list.List
	looks, reviews int
	ended          bool
}

func (l *line) Lock()   { l.Mutex.Lock() }
func (l *line) Unlock() { l.Mutex.Unlock() }

func (l *line) nextFor(*Request) *ticket {
	l.reviews++
	return nextOf(&l.waiters, false, func(*ticket) bool { l.looks++; return true })
}

// open is a client that is not closed.
type open struct{ users }

func (open) Closing() context.Context { return context.Background() }

// The time between two turns is measured while callers wait, whether others wait behind them or not. So a long turn
// long ago refuses no caller that waits for short ones; and one that would be next is never refused.
func TestTurnsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		busy := func(before int) bool { return p.busyLocked(time.Now().Add(time.Second), before) != nil }
		turn := func(after time.Duration) {
			since := time.Now()
			time.Sleep(after)
			p.turnLocked(since)
		}
		if busy(9) {
			t.Error("refused before a turn was seen")
		}
		turn(time.Hour)
		if busy(9) {
			t.Error("refused by the wait of the first, which others may have been ahead of")
		}
		turn(time.Minute)
		if !busy(1) || busy(0) {
			t.Errorf("a second behind turns of %v: refused with one ahead: %v, with none: %v", p.turns, busy(1), busy(0))
		}
		for range 100 {
			time.Sleep(time.Minute) // nothing waits
			turn(10 * time.Millisecond)
		}
		if busy(9) || !busy(200) {
			t.Errorf("turns of %v, want 10ms", p.turns)
		}
	})
}

// An agent that has chosen a caller for its place goes on while that caller waits, although nothing else does: the lease
// may be too short for a moment.
func TestAgentGoesOnForTheCallerItHasChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		c := &line{}
		tk := &ticket{r: &Request{}, patience: &p}
		tk.at = c.waiters.PushBack(tk)
		a := &agent{crew: c, client: open{}, cancel: func() { c.ended = true }}
		c.Lock()
		a.chooseLocked(tk)
		a.reviewLocked() // another one has left
		c.Unlock()
		time.Sleep(2 * breath)
		stays := a.Stays()
		c.Lock()
		if c.ended || !stays {
			t.Error("the agent has ended, want it to go on")
		}
		tk.at = nil
		a.reviewLocked()
		c.Unlock()
		time.Sleep(2 * breath)
		c.Lock()
		defer c.Unlock()
		if !c.ended {
			t.Error("the agent goes on for a caller that has left")
		}
	})
}

// At the gate, the first of those that ask for three permits is about to give up, so it is passed over. The next asks for two, and
// two were let through. The one behind that asks for three, and does not pass it: so the first has its turn.
func TestOnePassedOverOpensNoWayAroundFewerPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{byPath: map[string]*separate{}}
		request := func(permits int) *Request {
			want := place.Want{Name: "s", Path: "/s", Kind: queue.Kind{Mode: queue.Permit, Permits: permits}}
			return requestOf(place.Claim{Ctx: t.Context(), Mode: queue.Permit, Wants: []place.Want{want}}, nil)
		}
		enter := func(permits int) (*Request, *ticket) {
			r := request(permits)
			tk, err := g.enter(r, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return r, tk
		}
		var through *Request
		for range 3 {
			r, tk := enter(3)
			if through = r; tk != nil {
				t.Fatal("one of three permits waits at the gate")
			}
		}
		_, first := enter(3)
		_, two := enter(2)
		_, last := enter(3)
		p := first.patience
		p.leftLocked(&Request{ctx: t.Context()}, time.Now(), time.Now())
		p.workedLocked(time.Now().Add(-time.Second))
		first.deadline = time.Now().Add(time.Millisecond)
		g.leaveLocked(g.names(nil, through.Wants), through.Wants, func(e *admission) bool { return e.r == through })
		if first.at != nil || two.at == nil || last.at == nil {
			t.Errorf("let through: the first %t, the one for two %t, the last %t; want the first alone", first.at == nil, two.at == nil, last.at == nil)
		}
	})
}
