//go:build linux

package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// breakable is an ensemble whose servers locktest breaks: it implements servers.Ensemble. A server that starts, and one
// that finds the others again, serves when the method returns.
type breakable struct {
	*ensemble.Ensemble
	servers int                  // the number of servers at the beginning: those whose addresses the workers have
	stalled map[int]func() error // by server: ends the stalls of its disk
}

func newBreakable(e *ensemble.Ensemble) *breakable {
	return &breakable{e, len(e.Servers()), make(map[int]func() error)}
}

func (b *breakable) Addrs() (all []string) {
	for i := range b.servers {
		all = append(all, b.Server(i).Addr())
	}
	return all
}

func (b *breakable) Logs() (dirs []string) {
	for i := range b.servers {
		dirs = append(dirs, b.Server(i).Data())
	}
	return dirs
}

func (b *breakable) Kill(i int) error {
	b.Server(i).Kill()
	return nil
}

func (b *breakable) Stop(i int, stopped bool) error {
	if stopped {
		return b.Server(i).Freeze()
	}
	return b.Server(i).Thaw()
}

func (b *breakable) Start(i int) error {
	if err := b.Server(i).Start(); err != nil {
		return err
	}
	return b.Server(i).AwaitServing()
}

func (b *breakable) Restart(_ context.Context, i int) error {
	if err := b.Server(i).Stop(); err != nil {
		return err
	}
	return b.Start(i)
}

func (b *breakable) Leader(context.Context) (int, error) {
	leader, err := b.Ensemble.Leader()
	if err != nil {
		return -1, err
	}
	return leader.Index(), nil
}

// Cut cuts a follower off from the leader. The follower notices after the sync limit.
func (b *breakable) Cut(i int, cut bool) bool {
	if cut {
		return b.CutFromLeader(b.Server(i)) == nil
	}
	b.Heal()
	return b.Server(i).AwaitServing() == nil
}

// Slow makes a server wait for its transaction log, again and again, each time for up to six times as long. It goes on answering
// reads and pings.
func (b *breakable) Slow(i int, by time.Duration) error {
	if end := b.stalled[i]; end != nil {
		delete(b.stalled, i)
		return end()
	}
	if by == 0 {
		return nil
	}
	var stalling sync.WaitGroup
	var failed error
	over := make(chan struct{})
	stalling.Go(func() {
		for failed == nil {
			// One whose log is slow may be left behind by its leader, and look for another one.
			if failed = stallLog(b.Server(i).PID(), by+rand.N(5*by)); errors.Is(failed, errNoThread) {
				failed = nil
			}
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	b.stalled[i] = func() error {
		close(over)
		stalling.Wait()
		return failed
	}
	return nil
}

func (b *breakable) Jump(int, time.Duration) error {
	return errors.New("these servers have no clocks of their own")
}
