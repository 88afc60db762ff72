package deadlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// maxRefuted bounds how many steps one look may find to be wrong.
const maxRefuted = 16

// errAbsent means that a wait is not listed.
var errAbsent = errors.New("the registration is not listed yet, or not any more")

// look reads the register, and ends each of the waits that is the last of a circle. If it could not find
// that out, the waits look again in the next round.
func (d *Detector) look(waits []*listing) {
	ctx, cancel := context.WithTimeout(d.pool.Ctx, d.cfg.ConnectTimeout)
	defer cancel()
	s, err := d.pool.Session(ctx, d.path)
	if err != nil {
		return
	}
	all, err := d.list(ctx, s)
	if err != nil {
		d.bounded(errors.Is(err, driver.ErrReplyTooLarge))
		return
	}
	own := d.own()
	d.deleteStrays(s, all, own)
	g := newGraph(d.known(all, own))
	for _, r := range waits {
		if err := d.settle(ctx, s, g, own, r); err == nil {
			r.lookAt = time.Now().Add(lookAgain/2 + d.cfg.Jitter(lookAgain))
		}
	}
}

// bounded counts a search that has reached a bound.
func (d *Detector) bounded(is bool) {
	if is {
		d.Bounded.Add(1)
	}
}

// own returns this client's registrations, by their ids.
func (d *Detector) own() map[id]*registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := make(map[id]*registration)
	for _, n := range d.waits {
		if n.reg != nil {
			own[n.reg.wait.id] = n.reg.registration
		}
	}
	return own
}

// known returns the waits of the graph: those that are listed, and those of this client that the servers
// have refused. It is one or the other: the two have no common order.
func (d *Detector) known(listed []*wait, own map[id]*registration) []*wait {
	if !d.refused() {
		return listed
	}
	var all []*wait
	for _, r := range own {
		all = append(all, &r.wait)
	}
	return all
}

// deleteStrays deletes registrations of this client that no wait has. Creates whose outcomes were not known
// have left them.
func (d *Detector) deleteStrays(s *place.Session, all []*wait, own map[id]*registration) {
	if time.Now().After(d.doubtUntil) {
		return
	}
	for _, w := range all {
		if node := w.node; w.id.client == d.client && own[w.id] == nil {
			d.pool.Spawn(func() { _ = d.deleteNode(s, node) })
		}
	}
}

// settle ends a wait if it is the last of a circle. An error means that this could not be found out.
func (d *Detector) settle(ctx context.Context, s *place.Session, g *graph, own map[id]*registration, r *listing) error {
	self := &r.wait
	if at := slices.IndexFunc(g.waits, func(w *wait) bool { return w.id == self.id }); at >= 0 {
		self = g.waits[at]
	} else {
		return errAbsent // it is not there yet, or not any more
	}
	for range maxRefuted {
		circle, bounded := g.circle(self)
		d.bounded(bounded)
		if circle == nil {
			return nil
		}
		links, wrong, err := d.confirm(ctx, s, circle, own)
		switch {
		case err != nil:
			return err
		case wrong >= 0:
			g.refuted = append(g.refuted, circle[wrong])
			continue
		}
		if d.waitsStill(r) && d.commits(ctx, s, r, circle) {
			r.waiter.Deadlock(links)
		}
		return nil
	}
	d.bounded(true)
	return nil
}

// commits removes the registration of a wait that is about to end, and reports whether the others of the
// circle are registered after that. So of two waits that have seen each other one ends at most: the one that
// removes its registration later finds that the other's is gone, and is registered again.
func (d *Detector) commits(ctx context.Context, s *place.Session, r *listing, circle []step) bool {
	if r.wait.node == "" {
		return true // this goroutine ends all waits of its client, one after the other
	}
	if !withdraw([]*listing{r}, time.After(patience)) {
		return false
	}
	all, err := d.list(ctx, s)
	return err == nil && !slices.ContainsFunc(circle[1:], func(c step) bool {
		return !slices.ContainsFunc(all, func(w *wait) bool { return w.node == c.wait.node })
	})
}

// waitsStill reports whether a wait still is what its registration says.
func (d *Detector) waitsStill(r *listing) bool {
	d.mu.Lock()
	n, waits := d.waits[r.waiter]
	d.mu.Unlock()
	if !waits || n.reg != r || r.over() {
		return false
	}
	now := d.registrationOf(r.waiter, &n)
	return now != nil && now.nested.equal(&r.nested)
}
