package history

import (
	"sync"
	"time"
)

// Recorder notes events with the time of one clock. It keeps them in memory, about 150 bytes each. Its
// methods are safe for concurrent use.
type Recorder struct {
	began time.Time

	mu     sync.Mutex
	events []Event // guarded by mu
}

// NewRecorder returns a recorder whose clock begins now.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// Note gives an event its time, which is later than that of all events before, and keeps it. It returns
// the time.
func (r *Recorder) Note(e Event) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = int64(time.Since(r.began))
	if n := len(r.events); n > 0 {
		e.At = max(e.At, r.events[n-1].At+1)
	}
	r.events = append(r.events, e)
	return e.At
}

// NoteClock notes what the machine's wall clock shows.
func (r *Recorder) NoteClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	e := Event{At: int64(now.Sub(r.began)), Kind: Clock, Wall: now.UnixNano()}
	if n := len(r.events); n > 0 && e.At <= r.events[n-1].At {
		late := r.events[n-1].At + 1 - e.At
		e.At, e.Wall = e.At+late, e.Wall+late
	}
	r.events = append(r.events, e)
}

// Events returns the events so far. The caller must not change them.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[:len(r.events):len(r.events)]
}

// Now returns the time since the beginning of the run in nanoseconds.
func (r *Recorder) Now() int64 { return int64(time.Since(r.began)) }
