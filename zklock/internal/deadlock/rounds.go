package deadlock

import (
	"cmp"
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
			d.lastRound = time.Now()
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

// due returns when the next round is; the zero time if there is nothing to look at. A round serves all waits, so
// there are no more of them when more waits begin.
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
	for _, n := range d.waits {
		sooner(n.since.Add(d.timeout))
	}
	if least := d.lastRound.Add(min(max(d.timeout/2, leastTick), lookAgain/2)); !due.IsZero() && due.Before(least) {
		return least
	}
	return due
}

// round registers the waits that last, and again those whose registrations say no longer what is so: see history.
// Then it looks at the register, if a wait is new or the last look was long ago. One look serves all waits.
func (d *Detector) round() {
	now := time.Now()
	var fresh, old []*listing
	registered := false
	for _, r := range d.nested(now) {
		holds := len(r.nested.Held) > 0 // TestLossInACircle
		r.past.note(&r.nested, now)
		due := holds && r.past.due(now, d.timeout)
		if holds && r.before != nil && !r.before.over() && (r.before.wait.node == "") == d.refused() &&
			(r.before.nested.equal(&r.nested) || !due && r.before.own == r.own && !r.before.nested.misleads(&r.nested)) {
			registered = true
			continue
		}
		if r.before != nil {
			old = append(old, r.before)
		}
		if !due {
			continue
		}
		r.past.registers(now, d.timeout)
		if d.prepare(r) {
			fresh = append(fresh, r)
		}
	}
	d.removeAll(registrations(old))
	withdraw(old, time.After(patience))
	fresh = slices.DeleteFunc(fresh, func(r *listing) bool { return !d.adopt(r) })
	if len(fresh) > 0 {
		d.registerAll(fresh)
	}
	strays := now.Before(d.doubtUntil) && !now.Before(d.doubtNext)
	if strays {
		d.doubtNext = now.Add(d.cfg.SessionTimeout)
	}
	if len(fresh) > 0 || registered && !now.Before(d.lookAt) || strays {
		d.look()
	}
}

// nested returns the waits that have lasted for deadlock_timeout, each as the registration that says what is so
// at the moment. A wait that holds nothing needs no registration.
func (d *Detector) nested(at time.Time) (all []*listing) {
	var stand []local.Waiting
	d.mu.Lock()
	for w, n := range d.waits {
		if !at.Before(n.since.Add(d.timeout)) {
			if n.past == nil {
				n.past = new(history)
				d.waits[w] = n
			}
			all = append(all, &listing{registration: newRegistration(), waiter: w, own: n.own, before: n.reg, past: n.past, by: d})
			stand = append(stand, local.Waiting{Request: w.Wanted(), Own: n.own, Nearest: n.nearest})
		}
	}
	d.mu.Unlock()
	for i, behind := range d.local.Behind(stand) {
		if len(behind) > 0 {
			all[i].fill(stand[i], behind)
		}
	}
	return all
}

// fill notes what a wait that stands behind some points holds.
func (r *listing) fill(w local.Waiting, behind []local.Behind) {
	r.nested = Nested{Behind: behind, Label: w.Request.Origin.Label, Trace: w.Request.Origin.Trace}
	r.holds = r.waiter.Holds()
	holds := r.holds
	if w.Own != nil && len(w.Request.Wants) > 1 { // others wait for its nodes for the names that would be free; TestAllWaitsInACircle
		own, _ := w.Own.Contenders()
		for i, c := range own {
			holds = append(holds, Carried{Nodes: []local.NamedNode{{NodeID: c, Name: w.Request.Wants[i].Name}}})
		}
	}
	for _, h := range holds {
		for _, node := range h.Nodes {
			if !slices.Contains(r.nested.Held, node) {
				r.nested.Held = append(r.nested.Held, node)
			}
		}
	}
}

// prepare gives a registration its name and data. It returns false if it would be too large.
func (d *Detector) prepare(r *listing) bool {
	r.removed = func() { d.note(r, false) }
	d.serial++
	r.data = describe(d.cfg.Root, d.cfg.Host, d.cfg.PID, &r.nested).encode()
	var ok bool
	if r.wait, ok = newWait(d.cfg.Root, id{d.client, d.serial}, &r.nested); !ok || len(r.data) > maxData {
		d.unknown(r.waiter)
		return false
	}
	r.wait.number = d.serial
	if r.before != nil {
		r.wait.number = r.before.wait.number
	}
	return true
}

// adopt makes r the registration of its wait. It returns false if the wait has ended, or if a lock that r
// lists was released.
func (d *Detector) adopt(r *listing) bool {
	d.note(r, true)
	held := !slices.ContainsFunc(r.holds, func(h Carried) bool { return h.Handle != nil && !h.Handle.Held() })
	d.mu.Lock()
	n, waits := d.waits[r.waiter]
	if waits && held {
		n.reg, r.before = r, nil
		d.waits[r.waiter] = n
	}
	d.mu.Unlock()
	if waits && held {
		return true
	}
	close(r.made)
	d.remove(r.registration)
	return false
}

// registerAll makes the znodes of some registrations. If the servers refuse that, or to list them, they stand in memory only:
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
	doubt, denied := d.create(ctx, registrations(fresh))
	if doubt {
		now := time.Now()
		d.doubtUntil, d.doubtNext = now.Add(2*d.cfg.SessionTimeout+lateCreate), now
	}
	if denied != nil {
		d.refuse(denied)
	}
	for _, r := range fresh {
		if r.full {
			d.unknown(r.waiter)
		}
	}
}

// registrations returns what the register knows of some registrations.
func registrations(all []*listing) []*registration {
	regs := make([]*registration, len(all))
	for i, r := range all {
		regs[i] = r.registration
	}
	return regs
}

// Why a look does not know whether a wait is the last of a circle.
var (
	errAbsent  = errors.New("the registration is not listed")
	errChanged = errors.New("the circle has changed")
)

// look reads the register, and ends each of this client's waits that is the last of a circle. If it could
// not find that out for all, the next round looks again.
func (d *Detector) look() {
	ctx, cancel := context.WithTimeout(d.pool.Ctx, d.cfg.ConnectTimeout)
	defer cancel()
	s, err := d.pool.Session(ctx, d.path, 0)
	if err != nil {
		return
	}
	v := &reading{register: &d.register, s: s, own: make(map[id]*registration)}
	all, err := d.list(ctx, s)
	own := d.own()
	if errors.Is(err, driver.ErrNoAuth) && !d.refused() {
		d.refuse(err) // so the next round registers the waits in memory only
		return
	}
	if err != nil && !d.refused() { // else the waits of this client are enough
		for _, r := range own {
			if errors.Is(err, driver.ErrReplyTooLarge) {
				d.unknown(r.waiter)
			}
		}
		return
	}
	d.deleteStrays(s, all, own)
	v.g = newGraph(d.known(all, own))
	for i, r := range own {
		v.own[i] = r.registration
	}
	// The newest of some waits that wait for each other is the last of a circle. So it comes before a bound.
	newest := slices.SortedFunc(maps.Values(own), func(a, b *listing) int { return cmp.Compare(b.wait.order, a.wait.order) })
	again := false
	for _, r := range newest {
		again = d.judge(ctx, v, r) != nil || again
	}
	if !again {
		d.lookAt = time.Now().Add(lookAgain/2 + d.cfg.Jitter(lookAgain))
	}
}

// unknown counts a wait of which a bound hides whether it is in a circle.
func (d *Detector) unknown(w Waiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, waits := d.waits[w]; waits && !n.unknown {
		n.unknown = true
		d.waits[w] = n
		d.Unknown.Add(1)
	}
}

// own returns this client's registrations that are not over, by their ids.
func (d *Detector) own() map[id]*listing {
	own := make(map[id]*listing)
	d.mu.Lock()
	for _, n := range d.waits {
		if n.reg != nil {
			own[n.reg.wait.id] = n.reg
		}
	}
	d.mu.Unlock()
	maps.DeleteFunc(own, func(_ id, r *listing) bool { return r.over() })
	return own
}

// known returns the waits of the graph: those that are listed, or those of this client if the servers have
// refused registrations. It is one or the other: the two have no common order.
func (d *Detector) known(listed []*namedWait, own map[id]*listing) []*namedWait {
	if !d.refused() {
		return listed
	}
	var all []*namedWait
	for _, r := range own {
		all = append(all, &r.wait)
	}
	return all
}

// deleteStrays deletes registrations of this client that no wait has. Creates whose outcomes were not known
// have left them.
func (d *Detector) deleteStrays(s *place.WatchedDesk, all []*namedWait, own map[id]*listing) {
	if time.Now().After(d.doubtUntil) {
		return
	}
	for _, w := range all {
		if node := w.node; w.id.client == d.client && own[w.id] == nil {
			d.pool.Spawn(func() { _ = d.deleteNode(s, node) })
		}
	}
}

// judge ends a wait if it is the last of a circle. An error means that this could not be found out.
func (d *Detector) judge(ctx context.Context, v *reading, r *listing) error {
	last := v.g.find(r.registration)
	if last == nil {
		if r.on == v.s && r.wait.node != "" {
			d.remove(r.registration) // an operator has deleted it: the wait is registered again
		}
		return errAbsent
	}
	circle, err := v.search(ctx, last)
	if errors.Is(err, errBounded) {
		d.unknown(r.waiter)
		return nil
	}
	if circle != nil {
		if !d.commits(ctx, v, r, circle) {
			return errChanged
		}
		r.waiter.Deadlock(circle.links)
	}
	return err
}

// commits removes the registration of a wait that is about to end, and reports whether all else of the circle was so
// at that moment, and no earlier registration of the wait was there: see the fourth invariant of Detector.
func (d *Detector) commits(ctx context.Context, v *reading, r *listing, c *standing) bool {
	earlier := func(w *namedWait) bool {
		return w.id.client == d.client && w.number == r.wait.number && w.id != r.wait.id // TestMemberWithTwoRegistrations
	}
	ops := c.transaction(v.path)
	fit := v.s.Session.Fit(ops)
	if slices.ContainsFunc(v.g.waits, earlier) || !r.removal.judge() || !d.removeIf(ctx, v.s, r.registration, ops[:fit]) || !d.stood(ctx, v.s, ops[fit:]) {
		return false
	}
	if c.steps[0].wait.node == "" { // this client alone knows the others, too
		own := d.own()
		return !slices.ContainsFunc(c.steps, func(s step) bool { return s.wait.id != r.wait.id && own[s.wait.id] == nil })
	}
	if time.Now().After(d.doubtUntil) {
		return true
	}
	after, err := d.list(ctx, v.s)
	return err == nil && !slices.ContainsFunc(after, earlier)
}
