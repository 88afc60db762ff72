package deadlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// register is the znode that has the registrations.
type register struct {
	cfg  *place.NodeSettings
	pool *session.Pool[*place.WatchedDesk]
	path string

	refusedAt atomic.Pointer[time.Time] // when the servers have last refused to make, list or delete registrations
}

// refusedPause is for how long no wait is registered after the servers have refused that.
const refusedPause = time.Minute

// repeatPause is the time before a delete that has failed for another reason is repeated.
const repeatPause = time.Second

// registration is the znode of a nested wait, from before its create is sent until it is certainly
// gone.
type registration struct {
	nested Nested
	wait   namedWait
	data   []byte // of the znode

	on       *place.WatchedDesk // the session that makes it; nil if there was none
	made     chan struct{}      // closed when wait.node is set, or will not be
	bytes    int                // what it takes in the transaction that ends its session
	full     bool               // no session had room for it, or the servers do not read it
	doubtful bool               // it may exist although wait.node is not set
	removal  removal
	gone     chan struct{} // closed when the znode is gone, or goes with its session
	removed  func()        // called when gone is closed; may be nil
}

// newRegistration returns a registration that is not made yet.
func newRegistration() *registration {
	return &registration{made: make(chan struct{}), gone: make(chan struct{})}
}

// isGone reports whether the znode is gone, or goes with its session.
func (r *registration) isGone() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// over reports whether the registration is gone, or its session has ended.
func (r *registration) over() bool { return r.isGone() || r.on != nil && r.on.Session.IsOver() }

// refused reports whether the servers have refused registrations not long ago.
func (g *register) refused() bool {
	at := g.refusedAt.Load()
	return at != nil && time.Since(*at) < refusedPause
}

// refuse notes that the servers refuse to make, list or delete registrations. The first time it says so.
func (g *register) refuse(err error) {
	now := time.Now()
	if g.refusedAt.Swap(&now) == nil {
		g.cfg.Log().Warn("zklock: the servers refuse to register waits or to list them, so deadlocks between processes are not found: give this client the rights on the znode, or set deadlock_timeout=0",
			"path", g.path, "error", place.Logged(err))
	}
}

// create makes the znodes of some registrations. If the outcome of some is not known after that, doubt is true, and
// these registrations are doubtful and have no node. An error means that the servers refuse registrations.
//
// The first goes alone, since the register may be missing: a server removes an empty register. The others
// share transactions.
func (g *register) create(ctx context.Context, all []*registration) (doubt bool, denied error) {
	defer func() {
		for _, r := range all {
			close(r.made)
		}
	}()
	for left := all; len(left) > 0; {
		n := 1
		if left[0] != all[0] {
			n = len(left)
		}
		s, n := g.enter(ctx, left[:n])
		if n == 0 {
			return doubt, nil // without a session the waits wait no less
		}
		missing := g.submit(ctx, s, left[:n], &doubt, &denied)
		if missing && denied == nil {
			if denied = g.make(ctx, s); denied == nil {
				g.submit(ctx, s, left[:n], &doubt, &denied)
			}
		}
		if denied != nil {
			return doubt, denied
		}
		left = left[n:]
	}
	return doubt, nil
}

// enter counts registrations as those of one session, the first of them and as many more as it has room for, and
// returns their number; 0 if there is no session for them.
func (g *register) enter(ctx context.Context, regs []*registration) (s *place.WatchedDesk, n int) {
	for _, r := range regs {
		r.bytes = session.EphemeralSize(len(g.path) + 1 + len(r.wait.encode()) + seqSize)
	}
	s, err := g.pool.Session(ctx, g.path, regs[0].bytes-g.pool.Reserve())
	for err == nil && n < len(regs) {
		if err = s.Session.Enter(regs[n].bytes, g.pool.Reserve()); err == nil {
			s.Session.Rest() // a registration needs no lease
			regs[n].on = s
			n++
		}
	}
	if n == 0 {
		for _, r := range regs {
			r.full = errors.Is(err, errs.ErrFull) || errors.Is(err, errs.ErrNoRoom)
		}
	}
	return s, n
}

// submit sends the creates of the registrations that have no znode yet, and certainly none. missing reports that
// there is no register.
func (g *register) submit(ctx context.Context, s *place.WatchedDesk, regs []*registration, doubt *bool, denied *error) (missing bool) {
	writes := make([]*session.Write, len(regs))
	for i, r := range regs {
		if r.wait.node == "" && !r.doubtful { // TestRegisterThatGoesWhileACreateIsInDoubt
			writes[i] = &session.Write{Kind: "register", Ctx: ctx,
				Ops: []driver.Op{driver.CreateOp(g.path+"/"+r.wait.encode(), r.data, driver.EphemeralSequential, g.cfg.ACL)}}
			s.Session.Submit(writes[i])
		}
	}
	for i, w := range writes {
		if w == nil {
			continue
		}
		<-w.Done // within the time of a request
		switch {
		case w.Err == nil:
			regs[i].wait.named(w.Results[0].Path[len(g.path)+1:])
		case errors.Is(w.Err, driver.ErrNoNode):
			missing = true
		case errors.Is(w.Err, driver.ErrConnLoss):
			regs[i].doubtful, *doubt = true, true
		case errors.Is(w.Err, driver.ErrTooLarge): // for these servers; the others may be made; TestRegistrationThatIsTooLarge
			regs[i].full = true
		case session.Transient(w.Err): // it was not made
		case !s.Session.Ended(w.Err):
			*denied = w.Err
		}
	}
	return missing
}

// make creates the register, as a container if the servers have those.
func (g *register) make(ctx context.Context, s *place.WatchedDesk) error {
	err := s.Session.Repeat(ctx, "register", func(ctx context.Context, ds driver.Session) error {
		_, err := ds.Create(ctx, g.path, nil, driver.Container, g.cfg.ACL)
		if errors.Is(err, driver.ErrUnimplemented) {
			_, err = ds.Create(ctx, g.path, nil, driver.Persistent, g.cfg.ACL)
		}
		if errors.Is(err, driver.ErrNodeExists) {
			err = nil
		}
		return err
	})
	if errors.Is(err, errs.ErrSessionOver) || errors.Is(err, errs.ErrUnavailable) || ctx.Err() != nil {
		return nil
	}
	return err
}

// remove removes a registration in the background. gone is closed when that is confirmed, or when the
// session has ended. Calls after the first return false and do nothing.
func (g *register) remove(r *registration) (first bool) {
	if first = r.removal.begin(); first {
		g.deleteSoon(r)
	}
	return first
}

// deleteSoon is delete in the background.
func (g *register) deleteSoon(r *registration) {
	if !g.pool.Spawn(func() { g.delete(r) }) {
		r.end() // the client is closed, and its sessions end
	}
}

// removeAll is remove for several registrations. Their deletes share transactions.
func (g *register) removeAll(all []*registration) {
	var mine []*registration
	for _, r := range all {
		if r.removal.begin() {
			mine = append(mine, r)
		}
	}
	if len(mine) > 0 && !g.pool.Spawn(func() { g.deleteAll(mine) }) {
		for _, r := range mine {
			r.end()
		}
	}
}

// end notes that the znode is gone, or goes with its session. Only then the locks that it lists may be passed on.
func (r *registration) end() {
	close(r.gone)
	if r.removed != nil {
		r.removed()
	}
}

// leave leaves the session at once: one that retires ends, and its registrations with it. The znode counts in its
// room for as long as it may exist.
func (r *registration) leave() {
	r.on.Session.Leave(0, true)
}

// deleteAll deletes the znodes of some registrations with as few requests as possible. What that has not deleted
// it deletes one by one.
func (g *register) deleteAll(all []*registration) {
	writes := make([]*session.Write, len(all))
	for i, r := range all {
		<-r.made
		if r.on != nil && r.wait.node != "" && len(all) > 1 {
			writes[i] = &session.Write{Kind: "unregister", Ctx: r.on.Session.Context(), Ops: []driver.Op{driver.DeleteOp(g.path+"/"+r.wait.node, driver.AnyVersion)}}
			r.on.Session.Submit(writes[i])
		}
	}
	for i, r := range all {
		if w := writes[i]; w != nil {
			if <-w.Done; w.Err == nil {
				r.leave()
				r.on.Session.Free(r.bytes)
				r.end()
				continue
			}
		}
		g.deleteSoon(r)
	}
}

// removeIf removes a registration that is being judged, in a transaction, which fails if one of its checks does. It
// reports whether it has, and for the judgement alone.
func (g *register) removeIf(ctx context.Context, s *place.WatchedDesk, r *registration, ops []driver.Op) bool {
	w := &session.Write{Kind: "unregister", Ctx: ctx, Ops: ops}
	s.Session.Submit(w)
	<-w.Done // within the time of a request
	switch {
	case w.Err == nil:
		defer r.end()
		if r.on != nil {
			r.on.Session.Free(r.bytes)
			r.leave()
		}
		return r.removal.confirm()
	case errors.Is(w.Err, driver.ErrNoNode), errors.Is(w.Err, driver.ErrBadVersion), errors.Is(w.Err, driver.ErrNotSent), errors.Is(w.Err, driver.ErrThrottled): // it was not removed
		if r.removal.refute() {
			g.deleteSoon(r)
		}
	default:
		r.removal.confirm()
		g.deleteSoon(r)
	}
	return false
}

// delete deletes the znode of a registration. It tries until that succeeds, or the session has ended: until then the
// registration counts. Only a refusal means that the servers refuse registrations.
func (g *register) delete(r *registration) {
	defer r.end()
	<-r.made
	if r.on == nil {
		return
	}
	err := g.deleteOnce(r)
	r.leave()
	for err != nil && !errors.Is(err, errs.ErrSessionOver) {
		pause := repeatPause
		if errors.Is(err, driver.ErrNoAuth) || session.Permanent(err) {
			g.refuse(err)
			pause = refusedPause / 2
		}
		if !session.Sleep(g.pool.Ctx, pause, r.on.Session.Context().Done()) {
			return
		}
		err = g.deleteOnce(r)
	}
	r.on.Session.Free(r.bytes)
}

// deleteOnce deletes the znode of a registration, if it has one. It looks for one of which that is not known: as
// in package place, after a Sync, behind which no request of an old connection is applied as a rule. What comes
// later nevertheless is a stray.
func (g *register) deleteOnce(r *registration) error {
	if r.wait.node != "" {
		return g.deleteNode(r.on, r.wait.node)
	}
	if !r.doubtful {
		return nil
	}
	if err := g.sync(r.on.Session.Context(), r.on); err != nil {
		return err
	}
	all, err := g.list(r.on.Session.Context(), r.on)
	for _, w := range all {
		if w.id == r.wait.id && err == nil {
			err = g.deleteNode(r.on, w.node)
		}
	}
	return err
}

// deleteNode deletes the znode of a registration. It returns when that is confirmed, or refused, or the
// session has ended.
func (g *register) deleteNode(s *place.WatchedDesk, node string) error {
	return s.Session.Repeat(s.Session.Context(), "unregister", func(ctx context.Context, ds driver.Session) error {
		err := ds.Delete(ctx, g.path+"/"+node, driver.AnyVersion)
		if errors.Is(err, driver.ErrNoNode) {
			return nil
		}
		return err
	})
}

// sync returns when the server has applied all that was committed before.
func (g *register) sync(ctx context.Context, s *place.WatchedDesk) error {
	return s.Session.Repeat(ctx, "sync", func(ctx context.Context, ds driver.Session) error { return ds.Sync(ctx, g.path) })
}

// list returns the waits that are registered. What it does not understand it leaves out.
func (g *register) list(ctx context.Context, s *place.WatchedDesk) (waits []*namedWait, err error) {
	err = s.Session.Repeat(ctx, "register", func(ctx context.Context, ds driver.Session) error {
		names, _, err := ds.Children(ctx, g.path)
		if errors.Is(err, driver.ErrNoNode) {
			err = nil
		}
		waits = waits[:0]
		for _, name := range names {
			if w, ok := parse(name); ok {
				waits = append(waits, &w)
			}
		}
		return err
	})
	slices.SortFunc(waits, func(a, b *namedWait) int {
		return strings.Compare(a.node[len(a.node)-seqSize:], b.node[len(b.node)-seqSize:])
	})
	return waits, err
}
