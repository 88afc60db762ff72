package zkdriver

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// minPause and maxPause bound the pause after a round in which no server
	// could be used. It doubles from round to round and is jittered.
	minPause = 20 * time.Millisecond
	maxPause = time.Second

	// pausesInTimeout bounds the pause of a session further, as a share of its
	// timeout: a session has to find a server that is back in what a lost server
	// leaves of a lease, which is a third of the timeout.
	pausesInTimeout = 8

	// firstPause bounds the pause before the first reconnect after a connection
	// that was good, as a share of the session timeout, and maxFirstPause as a
	// time: the clients of a server that ends must not all dial the others in
	// the same instant.
	firstPause    = 40
	maxFirstPause = 250 * time.Millisecond
)

// clock is what pauses are measured with; tests have one of their own.
type clock struct {
	now func() time.Time

	// sleep returns early, with false, when ctx ends.
	sleep func(ctx context.Context, d time.Duration) bool
}

// wallClock is the clock outside of tests.
func wallClock() clock { return clock{now: time.Now, sleep: sleep} }

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// probed is what a look at a server has shown.
type probed struct {
	again   time.Time // when it may be looked at again
	verdict error     // nil: nothing
}

// backoff is how long to pause between rounds of attempts that fail. The sessions
// that a connector is opening share one, which outlives them: an ensemble that
// elects a leader accepts and closes connections, so the opening of a session
// fails after a second, and its user tries again, with a new one.
type backoff struct {
	clock clock

	mu     sync.Mutex
	rounds int       // that failed since the last handshake; guarded by mu
	last   time.Time // when the newest of them ended; guarded by mu

	probed map[string]probed  // what a look at a server has shown; guarded by mu
	errs   map[string]failure // the newest failure of each server since the last handshake; guarded by mu
}

// note remembers a failure, for sessions that wait before their first attempt.
func (b *backoff) note(server string, f failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.errs == nil {
		b.errs = make(map[string]failure)
	}
	b.errs[server] = f
}

// noted returns a failure that was remembered.
func (b *backoff) noted(server string) (f failure, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok = b.errs[server]
	return f, ok
}

// probe reports whether a server may be looked at, which then counts as done.
func (b *backoff) probe(server string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.now()
	if p, ok := b.probed[server]; ok && now.Before(p.again) {
		return false
	}
	if b.probed == nil {
		b.probed = make(map[string]probed)
	}
	b.probed[server] = probed{again: now.Add(probeAgain)}
	return true
}

// found notes what a look at a server has shown; nil: it did not answer in time.
// What will not change the next session has to find as well.
func (b *backoff) found(server string, verdict error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := b.clock.now(); {
	case verdict == nil:
		b.probed[server] = probed{now.Add(probeSoon), nil}
	case classify(verdict) == permanent:
		delete(b.probed, server)
	default:
		b.probed[server] = probed{now.Add(probeAgain), verdict}
	}
}

// hadNoQuorum reports whether a server has said so, and was not asked again since.
func (b *backoff) hadNoQuorum(server string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probed[server].verdict == errNoQuorum
}

// failed notes the end of a round in which no server could be used.
func (b *backoff) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rounds++
	b.last = b.clock.now()
}

// reset notes a connection that was good, or of use: then so many rounds still count
// as failed.
func (b *backoff) reset(rounds int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rounds, b.last = rounds, b.clock.now()
	clear(b.errs)
	clear(b.probed)
}

// left is how long to wait before the next round, of a session with that timeout.
func (b *backoff) left(timeout time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rounds == 0 {
		return 0
	}
	p := min(minPause<<min(b.rounds-1, 10), maxPause, max(timeout/pausesInTimeout, minPause))
	return p/2 + rand.N(p/2) - b.clock.now().Sub(b.last)
}
