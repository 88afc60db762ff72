package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// faults makes the faults, one after the other. Each is over when it returns, also if ctx ends.
func (r *run) faults(ctx context.Context) error {
	for _, f := range r.config.Faults {
		if !pause(ctx, f.After) {
			break
		}
		err := r.fault(ctx, f)
		if err == nil {
			err = r.recovered(ctx, r.history.Now())
		}
		if err != nil {
			return fmt.Errorf("locktest: %s: %w", f, err)
		}
	}
	return context.Cause(ctx)
}

// fault makes one fault.
func (r *run) fault(ctx context.Context, f fault.Fault) error {
	e := history.Event{Kind: history.Fault, Reason: f.String()}
	begin := func() {
		r.history.Note(e)
		r.say("%s", f)
	}
	if own := r.config.Own[f.Kind]; own != nil {
		begin()
		defer r.history.Note(history.Event{Kind: history.Healed})
		return own(ctx)
	}
	if f.Kind == fault.FadeOut {
		begin()
		defer r.history.Note(history.Event{Kind: history.Healed})
		r.fadeOut(ctx, f)
		return nil
	}
	if f.Kind.OfServer() {
		victim, err := r.victim(ctx, f)
		if err != nil {
			return err
		}
		e.Server = victim + 1
		free := r.confine(ctx, f.Confined, victim)
		defer free()
		if f.Kind != fault.CutFollower {
			free()
		}
		begin()
		defer func() { r.history.Note(history.Event{Kind: history.Healed, Server: victim + 1}) }()
		return r.server(ctx, f, victim)
	}
	s := r.slots[f.Victim]
	p := r.holder(ctx, s)
	if p == nil {
		return nil // the run ends
	}
	e.Worker = p.number
	if f.Kind == fault.StopWrite {
		l := r.holdUpWrite(ctx, p)
		defer close(l.resume)
	}
	begin()
	defer func() { r.history.Note(history.Event{Kind: history.Healed, Worker: p.number}) }()
	switch f.Kind {
	case fault.KillClient:
		s.set(func() { s.paused = true })
		p.kill(f.String())
		pause(ctx, f.Lasts)
		s.set(func() { s.paused = false })
	case fault.StopClient, fault.StopWrite:
		if err := p.child.Stop(); err != nil {
			return err
		}
		pause(ctx, f.Lasts)
		return p.child.Continue()
	case fault.JumpClient:
		if err := s.clock.Set(jump); err != nil {
			return err
		}
		pause(ctx, f.Lasts)
		return s.clock.Set(0)
	case fault.SlowClient:
		s.link.Slow(r.config.TTL / 16)
		pause(ctx, f.Lasts)
		s.link.Heal()
	default:
		s.link.Break(f.Kind)
		pause(ctx, f.Lasts)
		s.link.Heal()
	}
	return nil
}

// fadeOut makes the links of all clients slow, and cuts one after the other then, in equal steps: what a client was about to send when it
// was cut off is another thing each time.
func (r *run) fadeOut(ctx context.Context, f fault.Fault) {
	for _, s := range r.slots {
		s.link.Slow(f.Delay)
	}
	pause(ctx, r.config.TTL/4)
	for _, s := range r.slots {
		pause(ctx, r.config.TTL/2/time.Duration(len(r.slots)))
		s.link.Break(fault.CutClient)
	}
	pause(ctx, f.Lasts)
	for _, s := range r.slots {
		s.link.Heal()
	}
}

// holdUpWrite waits until a client of a process is about to write, and holds that write up until the
// result's resume is closed. If no client writes within twice the TTL, it holds up nothing.
func (r *run) holdUpWrite(ctx context.Context, p *process) *lateWrite {
	l := &lateWrite{reached: make(chan struct{}), resume: make(chan struct{})}
	p.late.Store(l)
	limit := time.NewTimer(2 * r.config.TTL)
	defer limit.Stop()
	select {
	case <-l.reached:
	case <-limit.C:
		p.late.CompareAndSwap(l, nil)
	case <-ctx.Done():
	}
	return l
}

// holder waits until the process of a slot holds a lock, and returns it. If that takes longer than
// twice the TTL, it returns a process that holds nothing. It returns nil if ctx ends.
func (r *run) holder(ctx context.Context, s *slot) *process {
	for began := time.Now(); ; {
		p := s.process(ctx)
		if p == nil || p.holds.Load() > 0 || time.Since(began) > 2*r.config.TTL {
			return p
		}
		if !pause(ctx, time.Millisecond) {
			return nil
		}
	}
}

// confine makes a client, whose number counts from 1, use one server, and the next client use others, until free is called. If it
// does not connect within the TTL, the fault strikes it where it is.
func (r *run) confine(ctx context.Context, client, server int) (free func()) {
	if client == 0 {
		return func() {}
	}
	l, next := r.slots[client-1].link, r.slots[client%r.config.Workers].link
	if next != l {
		next.Avoid(server)
	}
	for began := time.Now(); !l.Confine(server) && time.Since(began) < r.config.TTL; {
		pause(ctx, 10*time.Millisecond)
	}
	pause(ctx, r.config.TTL/4) // it acquires what it has lost
	return func() {
		l.Heal()
		next.Heal()
	}
}

// seat makes the client of the first fault use that fault's server before the clients begin, so that no lock is lost by that.
func (r *run) seat(ctx context.Context) error {
	if len(r.config.Faults) == 0 || r.config.Faults[0].Confined == 0 || !r.config.Faults[0].Kind.OfServer() {
		return nil
	}
	victim, err := r.victim(ctx, r.config.Faults[0])
	if err == nil {
		r.confine(ctx, r.config.Faults[0].Confined, victim) // until the fault ends it
	}
	return err
}

// recovered waits until each client has had a lock, in a cycle that began after a time, and has not lost it. The run fails
// if that takes longer than Config.Recover.
func (r *run) recovered(ctx context.Context, since int64) error {
	if r.config.Recover == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Recover)
	defer cancel()
	for _, c := range r.clients {
		for c.newest.Load() < since {
			if !pause(limited, time.Millisecond) {
				if ctx.Err() == nil {
					r.quit()
				}
				return cmp.Or(context.Cause(ctx), fmt.Errorf("a client of worker %d has had no lock within %v after it", slices.Index(r.slots, c.slot)+1, r.config.Recover))
			}
		}
	}
	r.history.Note(history.Event{Kind: history.Recovered})
	return nil
}

// quit makes the workers print where they are, if they do that at a SIGQUIT, as programs in Go and in Java do, and waits for that.
func (r *run) quit() {
	if r.config.Stuck != nil {
		r.config.Stuck()
	}
	for _, s := range r.slots {
		s.set(func() {
			if s.paused = true; s.current != nil {
				_ = s.current.child.Quit() // it may have ended
			}
		})
	}
	time.Sleep(time.Second)
}

// succeeded waits until another server leads in place of a leader that is stopped.
func (r *run) succeeded(ctx context.Context, k fault.Kind, stopped int) error {
	if k != fault.StopLeader || len(r.config.Ensemble.Addrs()) < 3 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Settle)
	defer cancel()
	for {
		leader, err := r.config.Ensemble.Leader(limited)
		if leader >= 0 && leader != stopped {
			return nil
		}
		if !pause(limited, 50*time.Millisecond) {
			return fmt.Errorf("find the next leader: %w", cmp.Or(err, context.Cause(limited)))
		}
	}
}

// jump is how far a wall clock jumps.
const jump = time.Hour

// victim returns the server that a fault strikes: the one that leads, one that does not, or the one of the schedule.
func (r *run) victim(ctx context.Context, f fault.Fault) (int, error) {
	ofLeader := f.Kind == fault.KillLeader || f.Kind == fault.StopLeader
	if !ofLeader && f.Kind != fault.CutFollower && f.Kind != fault.StopFollower {
		return f.Victim, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Settle)
	defer cancel()
	for {
		leader, err := r.config.Ensemble.Leader(limited)
		switch {
		case leader < 0 && !pause(limited, 50*time.Millisecond):
			return 0, fmt.Errorf("find the leader: %w", cmp.Or(err, context.Cause(limited)))
		case leader < 0:
		case ofLeader:
			return leader, nil
		case f.Victim != leader:
			return f.Victim, nil
		default:
			return (leader + 1) % len(r.config.Ensemble.Addrs()), nil
		}
	}
}

// server makes a fault of a server.
func (r *run) server(ctx context.Context, f fault.Fault, victim int) error {
	ensemble, began := r.config.Ensemble, r.history.Now()
	switch f.Kind {
	case fault.KillServer, fault.KillLeader:
		if err := ensemble.Kill(victim); err != nil {
			return err
		}
		killed := r.history.Now()
		if len(ensemble.Addrs()) > 2 { // the others are a quorum
			if err := r.recovered(ctx, began); err != nil {
				return err
			}
		}
		pause(ctx, f.Lasts-time.Duration(r.history.Now()-killed))
		return ensemble.Start(victim)
	case fault.StopLeader, fault.StopFollower:
		if err := ensemble.Stop(victim, true); err != nil {
			return err
		}
		err := r.succeeded(ctx, f.Kind, victim)
		pause(ctx, f.Lasts)
		return cmp.Or(ensemble.Stop(victim, false), err)
	case fault.CutFollower:
		if !ensemble.Cut(victim, true) {
			return errors.New("these servers have no connections to cut")
		}
		pause(ctx, f.Lasts)
		ensemble.Cut(victim, false)
	case fault.DropRoute:
		for _, s := range r.slots {
			s.link.Cut(victim, true)
		}
		pause(ctx, f.Lasts)
		for _, s := range r.slots {
			s.link.Cut(victim, false)
		}
	case fault.Rolling:
		limited, cancel := context.WithTimeout(ctx, r.config.Settle)
		defer cancel()
		for i := range ensemble.Addrs() {
			if err := ensemble.Restart(limited, (victim+i)%len(ensemble.Addrs())); err != nil {
				return err
			}
		}
	case fault.SlowDisk:
		return r.slow(ctx, f.Lasts)
	case fault.JumpServer:
		if err := ensemble.Jump(victim, jump); err != nil {
			return err
		}
		pause(ctx, f.Lasts)
		return ensemble.Jump(victim, 0)
	case fault.Blink:
		for _, s := range r.slots {
			s.link.Reset(victim)
		}
	}
	return nil
}

// slow makes the fsync of all servers slow for a time: each call takes a sixteenth of the TTL longer.
func (r *run) slow(ctx context.Context, lasts time.Duration) (err error) {
	for i := range r.config.Ensemble.Addrs() {
		if err = r.config.Ensemble.Slow(i, r.config.TTL/16); err != nil {
			break
		}
	}
	if err == nil {
		pause(ctx, lasts)
	}
	for i := range r.config.Ensemble.Addrs() {
		err = cmp.Or(err, r.config.Ensemble.Slow(i, 0))
	}
	return err
}
