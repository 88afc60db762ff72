package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// lossDelay is the loss_delay of these tests. It is long compared with everything but the
// session timeout. The ensemble's tick is 500ms.
const lossDelay = 2 * time.Second

// delayed returns the settings of a client with loss_delay.
func delayed() map[string]string {
	return map[string]string{"session_timeout": "6s", "tick_time": "500ms", "loss_delay": lossDelay.String()}
}

func delayEnsemble(servers int) *memdriver.Ensemble {
	return memdriver.New(memdriver.WithServers(servers), memdriver.WithTickTime(500*time.Millisecond), memdriver.WithLatency(time.Millisecond))
}

// losses records when locks were lost, and judges later grants by that.
type losses struct {
	mu     sync.Mutex
	last   map[string]map[zklock.Mode]time.Time // guarded by mu; by name and mode
	lost   int                                  // guarded by mu
	judged int                                  // guarded by mu; grants within a session timeout of a loss
	faults []string                             // guarded by mu
}

func (s *losses) note(l *zklock.Lock) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	for _, name := range l.Names() {
		if s.last[name] == nil {
			s.last[name] = map[zklock.Mode]time.Time{}
		}
		s.last[name][l.Mode()] = now
	}
}

func (s *losses) judge(l *zklock.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range l.Names() {
		for mode, at := range s.last[name] {
			if mode == zklock.Shared && l.Mode() == zklock.Shared {
				continue // readers hold at the same time
			}
			gap := time.Since(at)
			if gap < 6*time.Second {
				s.judged++
			}
			if gap < lossDelay {
				s.faults = append(s.faults, fmt.Sprintf("%s: %v granted %v after a %v lock was lost", name, l.Mode(), gap, mode))
			}
		}
	}
}

// delay runs clients against an ensemble with faults, as simulate does, but without an
// operator and without frozen clients. To the ensemble, a frozen client is the same as a
// session that is cut off, and its lock ends with its lease, whenever the client looks.
func delay(t *testing.T, seed uint64) *losses {
	rng := rand.New(rand.NewPCG(seed, 2))
	e := delayEnsemble(3)
	s := &losses{last: map[string]map[zklock.Mode]time.Time{}}
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	var workers sync.WaitGroup
	for range 3 {
		c := corekit.Connect(t, e.Connector(), delayed())
		for range 2 {
			own := rand.New(rand.NewPCG(seed, rng.Uint64()))
			workers.Go(func() {
				for ctx.Err() == nil {
					l, err := pickExclusive(c, own).Acquire(ctx)
					if err != nil {
						continue
					}
					s.judge(l)
					work := time.NewTimer(time.Duration(own.IntN(6000)) * time.Millisecond)
					select {
					case <-work.C:
					case <-l.Done():
					}
					if errors.Is(l.Err(), zklock.ErrLost) {
						s.note(l)
					}
					_ = l.Release(context.Background())
				}
			})
		}
	}
	for ctx.Err() == nil {
		pause := time.NewTimer(time.Duration(rng.IntN(3000)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			continue
		}
		sessions, server := e.Sessions(), rng.IntN(3)
		switch rng.IntN(8) {
		case 0, 1, 2:
			if len(sessions) > 0 {
				e.Partition(memdriver.AroundSession(sessions[rng.IntN(len(sessions))]))
			}
		case 3:
			e.Partition(memdriver.AroundServer(server))
		case 4:
			e.Restart(server)
		case 5:
			e.Partition(memdriver.AroundClients(server))
		default:
			e.Heal()
		}
	}
	e.Heal()
	workers.Wait()
	return s
}

func pickExclusive(c *zklock.Client, rng *rand.Rand) zklock.Acquirer {
	name := "n" + strconv.Itoa(rng.IntN(2))
	switch rng.IntN(5) {
	case 0:
		return c.RWMutex(name).Reader()
	case 1:
		return zklock.All(c.Mutex("n0"), c.Mutex("n1"))
	}
	return c.Mutex(name)
}

// ZKLOCK_SEED replays one run, ZKLOCK_RUNS sets how many runs there are.
func TestSimulatedLossesAreFollowedByTheDelay(t *testing.T) {
	from, n := uint64(1), uint64(15)
	if s := os.Getenv("ZKLOCK_SEED"); s != "" {
		from, _ = strconv.ParseUint(s, 10, 64)
		n = 1
	}
	if s := os.Getenv("ZKLOCK_RUNS"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	lost, judged := 0, 0
	for seed := from; seed < from+n; seed++ {
		synctest.Test(t, func(t *testing.T) {
			s := delay(t, seed)
			lost, judged = lost+s.lost, judged+s.judged
			for _, f := range s.faults {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d runs, %d locks lost, %d grants soon after that", n, lost, judged)
	if n > 1 && (lost < int(n)/4 || judged < int(n)/4) { // schedules differ from run to run
		t.Errorf("%d losses and %d grants soon after them in %d runs are too few to prove anything", lost, judged, n)
	}
}
