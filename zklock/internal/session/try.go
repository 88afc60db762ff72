package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// PatientTry derives the context of a try, of what Session would return for a path, that has had no usable session since that time.
// The context ends with cause errs.ErrTryOver, as soon as TryTimeout has passed without an answer, or
// without a connection. That one may have been lost before the try began. The pause after a loss does
// not count, since nothing is tried in it. In all the try has connect_timeout at most, so tries do not
// pile up behind those that slow answers leave without a lease.
func (p *Pool[M]) PatientTry(ctx context.Context, path string, bytes int, since time.Time) (context.Context, context.CancelFunc) {
	return patient(ctx, errs.ErrTryOver, func() time.Time { return p.tryUntil(path, bytes, since) })
}

// tryUntil returns until when a try goes on: see Pool.PatientTry.
func (p *Pool[M]) tryUntil(path string, bytes int, since time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := p.choose(path, bytes)
	sl, most := &p.slots[n], since.Add(p.Settings.ConnectTimeout)
	if sl.session != nil {
		since = sl.session.heardSince(since)
	}
	if cut := sl.cutSince(); !cut.IsZero() {
		since = cut.Add(sl.pause)
	}
	if o := sl.opening; o != nil && o.made.After(since) {
		since = o.made // which is an answer
	}
	return earlier(since.Add(p.Settings.TryTimeout()), most)
}
