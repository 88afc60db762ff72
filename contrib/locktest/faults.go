package locktest

import (
	"context"
	"fmt"
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
		if err := r.fault(ctx, f); err != nil {
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
	if f.Kind.OfServer() {
		e.Server = f.Victim + 1
		begin()
		return r.server(ctx, f)
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
	default:
		s.link.Break(f.Kind)
		pause(ctx, f.Lasts)
		s.link.Heal()
	}
	return nil
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

// server makes a fault of a server.
func (r *run) server(ctx context.Context, f fault.Fault) error {
	defer func() { r.history.Note(history.Event{Kind: history.Healed, Server: f.Victim + 1}) }()
	if f.Kind == fault.Blink {
		for _, s := range r.slots {
			s.link.Reset(f.Victim)
		}
		return nil
	}
	if err := r.config.Ensemble.Kill(f.Victim); err != nil {
		return err
	}
	pause(ctx, f.Lasts)
	return r.config.Ensemble.Start(f.Victim)
}
