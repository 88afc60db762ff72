package deadlock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// run is the detector's goroutine.
func (d *Detector) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			d.round()
		case <-d.wake:
		case <-d.pool.Ctx.Done():
			return
		}
		if due := d.due(); due.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(due))
		}
	}
}

// due returns when a wait has to be looked at next; the zero time if there is none.
func (d *Detector) due() (due time.Time) {
	sooner := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	if now := time.Now(); now.Before(d.doubtUntil) {
		sooner(d.doubtNext)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, n := range d.waits {
		at := n.since.Add(d.timeout)
		if !at.After(now) {
			at = now.Add(max(d.timeout, leastTick)) // it was looked at just now
		}
		sooner(at)
	}
	return due
}

// round registers the waits that last, and again those whose registrations say no longer what is so. Then
// it looks at the register for those that are new, or have not looked for long.
func (d *Detector) round() {
	now := time.Now()
	d.mu.Lock()
	waits := maps.Clone(d.waits)
	d.mu.Unlock()
	var fresh, old, look []*listing
	for w, n := range waits {
		if now.Before(n.since.Add(d.timeout)) {
			continue
		}
		nested, carried, ok := d.nestedOf(w, &n)
		switch {
		case ok && n.reg != nil && !n.reg.over() && (n.reg.wait.node == "") == d.refused() && n.reg.nested.equal(&nested):
			if now.After(n.reg.lookAt) {
				look = append(look, n.reg)
			}
			continue
		case n.reg != nil:
			old = append(old, n.reg)
		}
		if ok {
			if r := d.registrationOf(w, nested, carried); r != nil {
				fresh = append(fresh, r)
			}
		}
	}
	withdraw(old, time.After(patience))
	fresh = slices.DeleteFunc(fresh, func(r *listing) bool { return !d.adopt(r) })
	if len(fresh) > 0 {
		d.registerAll(fresh)
	}
	strays := now.Before(d.doubtUntil) && !now.Before(d.doubtNext)
	if strays {
		d.doubtNext = now.Add(d.cfg.SessionTimeout)
	}
	if look = append(look, fresh...); len(look) > 0 || strays {
		d.look(look)
	}
}

// nestedOf returns what a wait stands behind and holds at the moment, and the locks of that which its
// context carries. ok is false if it needs no registration.
func (d *Detector) nestedOf(w Waiter, n *nestedWait) (nested Nested, carried []Hold, ok bool) {
	r := w.Wanted()
	behind, ok := d.local.Behind(r, n.own, n.nearest)
	if !ok {
		return Nested{}, nil, false
	}
	nested = Nested{Behind: behind, Label: r.Origin.Label, Trace: r.Origin.Trace}
	carried = w.Holds()
	holds := carried
	if n.own != nil && len(r.Wants) > 1 { // others wait for its nodes for the names that would be free
		own, _ := n.own.Contenders()
		for i, c := range own {
			holds = append(holds, Hold{Nodes: []local.Node{{Contender: c, Name: r.Wants[i].Name}}})
		}
	}
	for _, h := range holds {
		for _, node := range h.Nodes {
			if !slices.Contains(nested.Held, node) {
				nested.Held = append(nested.Held, node)
			}
		}
	}
	return nested, carried, len(nested.Held) > 0
}

// registrationOf returns a registration that is not made yet; nil if it would be too large.
func (d *Detector) registrationOf(w Waiter, nested Nested, carried []Hold) *listing {
	reg := &listing{registration: newRegistration(), waiter: w, holds: carried, by: d}
	reg.nested = nested
	d.serial++
	reg.data = describe(d.cfg.Root, d.cfg.Host, d.cfg.PID, &nested).encode()
	var ok bool
	if reg.wait, ok = newWait(d.cfg.Root, id{d.client, d.serial}, &nested); !ok || len(reg.data) > maxData {
		d.Bounded.Add(1)
		return nil
	}
	return reg
}

// adopt makes r the registration of its wait. It returns false if the wait has ended, or if a lock that r
// lists was released.
func (d *Detector) adopt(r *listing) bool {
	d.note(r, true)
	held := !slices.ContainsFunc(r.holds, func(h Hold) bool { return h.Handle != nil && !h.Handle.Held() })
	d.mu.Lock()
	n, waits := d.waits[r.waiter]
	if waits && held {
		n.reg = r
		d.waits[r.waiter] = n
	}
	d.mu.Unlock()
	if waits && held {
		return true
	}
	close(r.made)
	d.remove(r.registration)
	d.note(r, false)
	return false
}

// refused reports whether the servers have refused registrations not long ago.
func (d *Detector) refused() bool {
	return !d.refusedAt.IsZero() && time.Since(d.refusedAt) < refusedPause
}

// registerAll makes the znodes of some registrations. If the servers refuse that, they stand in memory only:
// the circles inside this client are still found.
func (d *Detector) registerAll(fresh []*listing) {
	ctx, cancel := context.WithTimeout(d.pool.Ctx, d.cfg.ConnectTimeout)
	defer cancel()
	for _, r := range fresh {
		r.wait.order = int64(r.wait.id.serial)
	}
	if d.refused() {
		for _, r := range fresh {
			close(r.made)
		}
		return
	}
	regs := make([]*registration, len(fresh))
	for i, r := range fresh {
		regs[i] = r.registration
	}
	doubt, refused := d.create(ctx, regs)
	if doubt {
		now := time.Now()
		d.doubtUntil, d.doubtNext = now.Add(2*d.cfg.SessionTimeout+lateCreate), now
	}
	if refused != nil {
		first := d.refusedAt.IsZero()
		if d.refusedAt = time.Now(); !first {
			return
		}
		d.cfg.Log().Warn("zklock: the servers refuse to register waits, so deadlocks between processes are not found: give this client the rights on the znode, or set deadlock_timeout=0",
			"path", d.path, "error", place.Logged(refused))
	}
}

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
	circle, links, err := d.search(ctx, s, g, self, own)
	if circle != nil && d.waitsStill(r) && d.commits(ctx, s, r, circle) {
		r.waiter.Deadlock(links)
	}
	return err
}

// search returns a circle of which a wait is the last, one of the shortest, and what is known of its waits;
// nil if there is none that is confirmed.
func (d *Detector) search(ctx context.Context, s *place.Session, g *graph, last *wait, own map[id]*registration) ([]step, []Link, error) {
	for range maxRefuted {
		circle, bounded := g.circle(last)
		d.bounded(bounded)
		if circle == nil {
			return nil, nil, nil
		}
		links, wrong, err := d.confirm(ctx, s, circle, own)
		if err != nil {
			return nil, nil, err
		}
		if wrong < 0 {
			return circle, links, nil
		}
		g.refuted = append(g.refuted, circle[wrong])
	}
	d.bounded(true)
	return nil, nil, nil
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
	now, _, ok := d.nestedOf(r.waiter, &n)
	return ok && now.equal(&r.nested)
}
