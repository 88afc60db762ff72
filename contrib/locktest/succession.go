package locktest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// queueing is how long a process that waits for a lock gets until it is in the queue.
const queueing = 300 * time.Millisecond

// kill kills so many holders as Config.Kills says. The names share them, and each of these has its own line of
// processes. It returns when each process has ended.
func (r *run) kill(ctx context.Context) ([]history.Event, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var lines sync.WaitGroup
	names := r.config.Names[:min(len(r.config.Names), r.config.Kills)]
	for i, name := range names {
		l := &line{client: client{run: r, rng: rand.New(rand.NewPCG(r.config.Seed, uint64(i)))}, lock: Lock{Name: name}}
		lines.Go(func() {
			if err := l.kill(ctx, (r.config.Kills+i)/len(names)); err != nil {
				cancel(fmt.Errorf("locktest: %s: %w", name, err))
			}
		})
	}
	var reporting sync.WaitGroup
	reported, done := context.WithCancel(ctx)
	reporting.Go(func() { r.report(reported) })
	lines.Wait()
	done()
	reporting.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r.history.Note(history.Event{Kind: history.Settled})
	return r.history.Events(), nil
}

// line is the processes that hold one name, one after the other.
type line struct {
	client
	lock      Lock
	processes int // that were started
}

// successor is a process that acquires the name of its line.
type successor struct {
	process *process
	granted chan *lock // gets the lock, or nil if the process ends before
	held    *lock      // what granted had; nil: nothing yet
}

// kill kills so many holders. The one after the last of them gives the lock back.
func (l *line) kill(ctx context.Context, kills int) (err error) {
	holder, err := l.next(ctx)
	if err == nil {
		err = l.await(ctx, holder)
	}
	var waiting *successor
	defer func() {
		for _, s := range []*successor{holder, waiting} {
			if s == nil {
				continue
			}
			if s.held != nil && err == nil {
				l.give(ctx, s.process, s.held)
			}
			if failed := s.process.end(l.run.config.TTL); err == nil {
				err = failed
			}
		}
	}()
	for killed, lost := 0, 0; err == nil && killed < kills; {
		if !l.run.config.Restart {
			if waiting, err = l.next(ctx); err != nil {
				return err
			}
		}
		if !pause(ctx, queueing+time.Duration(l.rng.Int64N(max(1, int64(l.run.config.Beat))))) {
			return context.Cause(ctx)
		}
		// The judge sees it if the process that waits has been granted the lock before this check.
		if l.holds(ctx, holder.process, holder.held) {
			holder.process.kill(history.HolderKilled)
			killed++
		} else if lost++; lost > kills {
			return fmt.Errorf("%d holders had lost the lock before they were killed", lost)
		} else {
			l.run.say("%s: a holder had lost the lock before it was killed", l.lock.Name)
			l.give(ctx, holder.process, holder.held)
		}
		if err := holder.process.end(l.run.config.TTL); err != nil {
			return err
		}
		if holder, waiting = waiting, nil; holder == nil {
			if holder, err = l.next(ctx); err != nil {
				return err
			}
		}
		err = l.await(ctx, holder)
	}
	return err
}

// next starts a process that acquires the name. The processes run the commands in turn.
func (l *line) next(ctx context.Context) (*successor, error) {
	commands := l.run.config.commands()
	p, err := l.run.start(ctx, l.run.numbers.next(), commands[l.processes%len(commands)], nil, l.run.config.Ensemble.Addrs())
	if err != nil {
		return nil, err
	}
	l.processes++
	s := &successor{process: p, granted: make(chan *lock, 1)}
	go func() { // ends with the process
		held := l.take(ctx, p, l.lock, 0)
		for held == nil && !p.child.Over() && pause(ctx, l.run.config.TTL/10) {
			held = l.take(ctx, p, l.lock, 0)
		}
		s.granted <- held
	}()
	return s, nil
}

// await waits until a process has been granted the lock.
func (l *line) await(ctx context.Context, s *successor) error {
	limit := time.NewTimer(l.run.config.Settle)
	defer limit.Stop()
	select {
	case s.held = <-s.granted:
		if s.held == nil {
			return cmp.Or(s.process.end(0), fmt.Errorf("worker %d has ended before it was granted the lock", s.process.number))
		}
		return nil
	case <-limit.C:
		return fmt.Errorf("worker %d was not granted the lock within %v", s.process.number, l.run.config.Settle)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
