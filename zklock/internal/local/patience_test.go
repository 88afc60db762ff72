package local

import (
	"container/list"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
