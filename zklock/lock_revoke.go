package zklock

import (
	"fmt"
	"time"
)

// revocation is what a handle with WithRevocable knows of requests to give its lock back.
type revocation struct {
	asked chan struct{} // closed when err is set
	err   error         // guarded by the handle's mu; matches ErrRevoked; nil if there was no request
	at    time.Time     // guarded by the handle's mu; when err was set
}

// reason returns nil until there was a request. The handle's mu is held.
func (r *revocation) reason() error {
	if r == nil {
		return nil
	}
	return r.err
}

// revokedAt returns when the lock was revoked; the zero time if it was not.
func (hd *lockHandle) revokedAt() (at time.Time) {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	if hd.revoked != nil {
		at = hd.revoked.at
	}
	return at
}

// Revoked returns a channel that is closed when an operator asks for the lock with
// [Client.Revoke]. The lock is still held then: release it soon. If the lock was acquired
// without [WithRevocable], Revoked returns nil, and a receive from that waits for ever. The
// channel stays open if the lock ends before there is a request, so wait for [Lock.Done], too.
func (l *Lock) Revoked() <-chan struct{} {
	l.handle.mu.Lock()
	defer l.handle.mu.Unlock()
	if l.handle.revoked == nil {
		return nil
	}
	return l.handle.revoked.asked
}

// setUp applies the options of an acquisition that concern the lock that it got, before the
// caller has the lock.
func (l *Lock) setUp(async, revocable bool, maxHold time.Duration) {
	l.handle.async, l.handle.maxHold = async, maxHold
	if !revocable {
		return
	}
	l.handle.mu.Lock()
	l.handle.revoked = &revocation{asked: make(chan struct{})}
	l.handle.mu.Unlock()
	if reason, revoked := l.handle.hold.Attend(); revoked {
		l.handle.Revoke(reason)
	}
}

// Revoke implements local.Handle: it asks the handle's caller to give the lock back, if that caller wants to be asked. Only
// the first request has an effect. reason is a text of another client, so it is escaped.
func (hd *lockHandle) Revoke(reason string) {
	hd.mu.Lock()
	r := hd.revoked
	if r == nil || r.err != nil || hd.reason() != nil {
		hd.mu.Unlock()
		return
	}
	err := fmt.Errorf("%w: %q", ErrRevoked, reason)
	r.err, r.at = err, time.Now()
	close(r.asked)
	contexts := hd.contexts
	hd.contexts = nil
	hd.mu.Unlock()
	for cancel := range contexts {
		(*cancel)(err)
	}
}
