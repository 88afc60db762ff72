// Package backlog has a goroutine of its own write lines to a log, so that no goroutine that logs waits for
// the log.
package backlog

import (
	"sync"
	"time"
)

// Queue calls functions that write lines, one after the other, in the order in which they were added. A
// function may block, as a write to a pipe does that no process reads. Then further lines wait, and those that
// do not fit are dropped and counted: no caller of Add waits. The zero Queue is ready for use.
//
// The goroutine that calls the functions runs only while there are any, so that thousands of idle clients cost
// no goroutine. The owner of the Queue joins it with Flush. A function that blocks for ever keeps it: Go
// cannot end a goroutine that runs another's code. Then Flush gives up, and what stays behind is this one
// goroutine with at most a Queue full of lines. It ends when the function returns.
type Queue struct {
	mu      sync.Mutex
	waiting []line        // guarded by mu
	began   time.Time     // guarded by mu; when the goroutine began, or began to write its newest line
	idle    chan struct{} // guarded by mu; closed when the goroutine has nothing left to do; nil: there is no goroutine
	dropped uint64        // guarded by mu; in total
}

// line is a line that waits, or a gap where lines were dropped.
type line struct {
	write   func()
	gap     uint64 // how many were dropped here; 0: write is set
	dropped func(n uint64)
}

const (
	// Size is how many lines wait at most.
	Size = 128

	// Patience is how long the end of a client, or of a program, waits for its last lines.
	Patience = time.Second
)

// Add has write called. It never waits. If too many lines wait, it drops this one and returns false: then
// dropped is called in place of this line and of those that are dropped after it, with their number.
func (q *Queue) Add(write func(), dropped func(n uint64)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	fits := len(q.waiting) < Size
	switch last := len(q.waiting) - 1; {
	case fits:
		q.waiting = append(q.waiting, line{write: write})
	case q.waiting[last].gap == 0:
		q.waiting = append(q.waiting, line{gap: 1, dropped: dropped})
		q.dropped++
	default:
		q.waiting[last].gap++
		q.dropped++
	}
	if q.idle == nil {
		q.idle, q.began = make(chan struct{}), time.Now()
		go q.run()
	}
	return fits
}

// run writes lines until none waits.
func (q *Queue) run() {
	for next := q.next(); next != nil; next = q.next() {
		next()
	}
}

// next returns the function of the next line. Without one it returns nil, and the goroutine ends.
func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.idle)
		q.idle, q.waiting = nil, nil
		return nil
	}
	l := q.waiting[0]
	q.waiting[0] = line{}
	q.waiting, q.began = q.waiting[1:], time.Now()
	if l.gap > 0 {
		return func() { l.dropped(l.gap) }
	}
	return l.write
}

// Dropped returns how many lines were dropped so far.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Flush waits until the lines have been written that were added before, but no longer than patience. It
// does not wait at all if one line has taken that long already: so a program that closes a thousand clients of a
// log that blocks does not wait a thousand times.
func (q *Queue) Flush(patience time.Duration) {
	q.mu.Lock()
	idle, left := q.idle, patience-time.Since(q.began)
	q.mu.Unlock()
	if idle == nil || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
