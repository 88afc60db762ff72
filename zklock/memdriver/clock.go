package memdriver

import (
	"container/heap"
	"time"
)

// clock runs the ensemble's scheduled work: work to do at once (posted) and work to
// do later (after). All of it runs under the ensemble's mutex, one piece at a time,
// ordered by time and then by arrival. So a run inside a synctest bubble can be
// repeated exactly.
//
// One timer, armed for the earliest event, drives everything. While nothing is
// scheduled, no timer exists, and so the runtime holds no trace of the ensemble. Then
// the ensemble may move from one synctest bubble to another.
type clock struct {
	now    time.Time // when the ensemble was entered; time.Now is read once for each entry
	events eventHeap
	seq    uint64
	posted []func() // messages without delay; empty whenever mu is free
	timer  *time.Timer
	due    time.Time     // when timer fires
	armed  int           // timers that may still call fire
	quiet  chan struct{} // closed when armed falls to 0 after stop
}

// event is work that runs at a given time if it is not cancelled.
type event struct {
	at   time.Time
	seq  uint64
	run  func() // nil after it was cancelled or has run
	heap int
}

// enter locks the ensemble and reads the clock.
func (e *Ensemble) enter() {
	e.mu.Lock()
	e.clock.now = time.Now()
}

// leave runs what was posted, arms the timer and unlocks the ensemble.
func (e *Ensemble) leave() {
	e.drain()
	e.arm()
	e.mu.Unlock()
}

// post schedules run to be called before the ensemble is left, after everything that
// was posted earlier.
func (e *Ensemble) post(run func()) { e.clock.posted = append(e.clock.posted, run) }

// drain runs what was posted, until nothing is left.
func (e *Ensemble) drain() {
	c := &e.clock
	for i := 0; i < len(c.posted); i++ {
		run := c.posted[i]
		c.posted[i] = nil
		run()
	}
	c.posted = c.posted[:0]
}

// after schedules run to be called when d has passed. Even if d is 0, run waits until
// the timer fires.
func (e *Ensemble) after(d time.Duration, run func()) *event {
	c := &e.clock
	c.seq++
	ev := &event{at: c.now.Add(d), seq: c.seq, run: run}
	heap.Push(&c.events, ev)
	return ev
}

// cancel keeps an event from running. ev may be nil, or an event that has run.
func (e *Ensemble) cancel(ev *event) {
	if ev == nil || ev.run == nil {
		return
	}
	ev.run = nil
	heap.Remove(&e.clock.events, ev.heap)
}

// arm makes the timer fire when the earliest event is due.
func (e *Ensemble) arm() {
	c := &e.clock
	if len(c.events) == 0 {
		e.disarm()
		return
	}
	first := c.events[0].at
	if c.timer != nil && c.due.Equal(first) {
		return
	}
	e.disarm()
	c.armed++
	c.due = first
	c.timer = time.AfterFunc(time.Until(first), e.fire)
}

// disarm stops the timer. If it is too late to stop its callback, that finds nothing
// due, or runs what is due; both are correct.
func (e *Ensemble) disarm() {
	c := &e.clock
	if c.timer == nil {
		return
	}
	if c.timer.Stop() {
		c.armed--
	}
	c.timer = nil
}

// fire is the timer's callback.
func (e *Ensemble) fire() {
	e.enter()
	c := &e.clock
	c.timer = nil
	for len(c.events) > 0 && !c.events[0].at.After(c.now) {
		ev := heap.Pop(&c.events).(*event)
		run := ev.run
		ev.run = nil
		run()
		e.drain()
	}
	c.armed--
	if c.armed == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
	e.leave()
}

// stop drops everything that is scheduled. It returns a channel that is closed when the last
// running callback has ended, or nil if none runs. The caller must wait for it without the
// mutex.
func (e *Ensemble) stop() <-chan struct{} {
	c := &e.clock
	for _, ev := range c.events {
		ev.run = nil
	}
	c.events = nil
	e.disarm()
	if c.armed == 0 {
		return nil
	}
	c.quiet = make(chan struct{})
	return c.quiet
}

// eventHeap orders events by time, then by when they were scheduled.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}

func (h eventHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heap, h[j].heap = i, j
}

func (h *eventHeap) Push(x any) {
	ev := x.(*event)
	ev.heap = len(*h)
	*h = append(*h, ev)
}

func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
