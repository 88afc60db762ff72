package place

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// horizon returns for how long after it was given up a create is likely to appear. A server that
// closes silent connections reads it within a session timeout and a bucket. Then an ensemble that
// takes longer than a session timeout for a commit loses the session.
func (d *Desk) horizon() time.Duration { return 2*d.Session.Timeout() + bucket }

// doubt has names listed: at once, if now is true, and else from a session timeout on. Below each of
// them, a create of one place has an unknown outcome.
func (d *Desk) doubt(paths []string, now bool) {
	d.mu.Lock()
	for _, path := range paths {
		d.doubts.addLocked(path, now, d.Session.Timeout(), d.horizon())
	}
	begins := !d.doubts.looking
	d.doubts.looking = true
	d.mu.Unlock()
	if session.Poke(d.doubts.added); begins {
		d.Session.Spawn(d.lookOut) // refused if the session is over: its nodes go with it
	}
}

// lookOut lists doubtful names until there are none.
func (d *Desk) lookOut() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for d.Session.Context().Err() == nil {
		due, wait, more := d.dueDoubts()
		switch {
		case !more:
			return
		case len(due) > 0:
			d.lookAt(due)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-d.doubts.added:
		case <-d.Session.Context().Done():
		}
	}
}

// dueDoubts returns some doubts that are due, and notes when they are due again. If none is, it
// returns the time until the first one is. more is false if there are no doubts: lookOut has to end.
func (d *Desk) dueDoubts() (due []doubt, wait time.Duration, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ds, now := &d.doubts, time.Now()
	for len(due) < maxLookouts && len(ds.byPath) > 0 {
		e := ds.firstLocked()
		if wait = e.Value.(*doubt).next.Sub(now); wait > 0 {
			break
		}
		x := ds.takeLocked(e)
		if !now.Before(x.until) {
			x.pause = min(x.pause+1, pauses-1)
		}
		x.next = now.Add(max(d.Session.Timeout(), min(d.Session.Timeout()<<x.pause, longestPause)))
		ds.putLocked(x)
		due = append(due, *x)
	}
	if ds.looking = len(ds.byPath) > 0; !ds.looking {
		ds.byPath = nil // a map does not shrink
	}
	return due, wait, ds.looking
}

// lookAt lists doubtful names, which has late nodes deleted. It takes out those whose list is refused,
// if their horizon had passed before: more lists would be refused, too. In an outage it waits, as the
// session does.
func (d *Desk) lookAt(due []doubt) {
	began := time.Now()
	var lists sync.WaitGroup
	for _, x := range due {
		lists.Go(func() {
			z := Znode{d, x.path}
			err := d.Session.Repeat(d.Session.Context(), "list", func(ctx context.Context, ds driver.Session) error {
				_, _, err := z.listOnce(ctx, ds)
				return err
			})
			if err == nil || errors.Is(err, driver.ErrNoNode) || began.Before(x.until) { // TestLookoutsEndWithoutTheRightToList
				return // the create of a fresh name makes the znode, too
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if e := d.doubts.byPath[x.path]; e != nil && e.Value.(*doubt).until.Equal(x.until) {
				d.doubts.takeLocked(e)
			}
		})
	}
	lists.Wait()
}
