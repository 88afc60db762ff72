package zkdriver

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// minPause and maxPause bound the pause after a failed round: every server was tried, and none
	// could be used. The pause doubles from round to round and has jitter.
	minPause = 20 * time.Millisecond
	maxPause = time.Second

	// pausesInTimeout also bounds the pause, as a share of the session timeout. When a server
	// is lost, a third of the timeout is left of a lease. Within that time the session must
	// find a server that is back.
	pausesInTimeout = 8

	// firstPause bounds the pause before the first reconnect after a good connection,
	// as a share of the session timeout. maxFirstPause bounds it as a time. When a
	// server stops, its clients must not all dial the other servers at the same
	// instant.
	firstPause    = 40
	maxFirstPause = 250 * time.Millisecond
)

// sleep returns false, and returns early, when ctx ends.
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

// probed is the result of a probe of a server.
type probed struct {
	again   time.Time // when the server may be probed again
	verdict error     // nil: the probe has found nothing
}

// backoff computes the pause between rounds of failed attempts. All sessions that a
// connector is opening share one backoff, which outlives them. An ensemble that
// elects a leader accepts connections and closes them, so opening a session fails
// after a second; then the user tries again with a new session.
type backoff struct {
	mu     sync.Mutex
	rounds int       // failed rounds since the last handshake; guarded by mu
	last   time.Time // when the newest of them ended; guarded by mu

	probed map[string]probed  // the result of the newest probe of each server; guarded by mu
	errs   map[string]failure // the newest failure of each server since the last handshake; guarded by mu
}

// note records a failure, for sessions that wait before their first attempt.
func (b *backoff) note(server string, f failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.errs == nil {
		b.errs = make(map[string]failure)
	}
	b.errs[server] = f
}

// noted returns the recorded failure of a server.
func (b *backoff) noted(server string) (f failure, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok = b.errs[server]
	return f, ok
}

// probe reports whether the caller may probe a server now. If so, it counts the
// server as probed.
func (b *backoff) probe(server string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if p, ok := b.probed[server]; ok && now.Before(p.again) {
		return false
	}
	if b.probed == nil {
		b.probed = make(map[string]probed)
	}
	b.probed[server] = probed{again: now.Add(probeAgain)}
	return true
}

// found records the result of a probe; nil means that the server did not answer in
// time. A permanent verdict is not kept: the next session has to probe the server and
// find it again.
func (b *backoff) found(server string, verdict error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := time.Now(); {
	case verdict == nil:
		b.probed[server] = probed{now.Add(probeSoon), nil}
	case classify(verdict) == permanent:
		delete(b.probed, server)
	default:
		b.probed[server] = probed{now.Add(probeAgain), verdict}
	}
}

// verdict returns what the newest probe of a server found, if another attempt may succeed
// nevertheless: the server has no quorum. Otherwise it returns nil.
func (b *backoff) verdict(server string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probed[server].verdict
}

// failed records the end of a failed round.
func (b *backoff) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rounds++
	b.last = time.Now()
}

// reset records a connection that was good or has answered a request. rounds is the number of
// failed rounds to keep on record.
func (b *backoff) reset(rounds int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rounds, b.last = rounds, time.Now()
	clear(b.errs)
	clear(b.probed)
}

// left returns how long a session with that timeout must wait before the next round.
func (b *backoff) left(timeout time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rounds == 0 {
		return 0
	}
	p := min(minPause<<min(b.rounds-1, 10), maxPause, max(timeout/pausesInTimeout, minPause))
	return p/2 + rand.N(p/2) - time.Since(b.last)
}
