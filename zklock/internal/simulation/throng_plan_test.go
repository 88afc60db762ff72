package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
)

// throngPlan is what a seed decides about a throng before it begins.
type throngPlan struct {
	clients, callers, rounds int
	latency                  time.Duration
	grain                    time.Duration // times are multiples of it, so that many events have the same instant
	wait, work, pause        time.Duration // at most
	keep, loss               time.Duration // the settings keep and loss_delay
	pool                     int
	waiters                  int     // max_waiters
	hooks                    float64 // how many requests have their caller give up
	faults                   int
}

// newThrongPlan returns the plan of a seed. callers, if not 0, is how many there are. They come at about the same time.
func newThrongPlan(rng *rand.Rand, callers int) throngPlan {
	p := throngPlan{clients: 1 + rng.IntN(3), callers: 20 + rng.IntN(180), rounds: 2 + rng.IntN(4), pool: 1 + rng.IntN(2)}
	p.latency = time.Duration(rng.IntN(3)) * 500 * time.Microsecond
	p.grain = []time.Duration{time.Nanosecond, 500 * time.Microsecond, 5 * time.Millisecond}[rng.IntN(3)]
	p.wait = []time.Duration{10, 100, 1000}[rng.IntN(3)] * time.Millisecond
	p.work = []time.Duration{0, 2, 20}[rng.IntN(3)] * time.Millisecond
	p.pause = []time.Duration{0, 20, 300}[rng.IntN(3)] * time.Millisecond
	if rng.IntN(2) == 0 {
		p.keep = []time.Duration{20 * time.Millisecond, time.Second}[rng.IntN(2)]
	}
	if rng.IntN(4) == 0 {
		p.loss = simTimeout / 4
	}
	if rng.IntN(4) == 0 {
		p.waiters = 1 + rng.IntN(p.callers)
	}
	p.hooks = []float64{0, 0.05, 0.5}[rng.IntN(3)]
	p.faults = []int{0, 2, 8}[rng.IntN(3)]
	if rng.IntN(8) == 0 && !corekit.Race { // thousands at once
		p.callers, p.rounds = 2000+rng.IntN(2000), 1
	}
	if callers > 0 {
		p.callers, p.rounds = callers, 1
	}
	return p
}

// wants is what a caller acquires.
type wants struct {
	a       zklock.Acquirer
	modes   map[string]zklock.Mode
	permits int // that it asks for; 0: it is not a permit
}

// throngNames are the names of exclusive locks and of readers. The semaphore has a name of its own.
var throngNames = []string{"a", "b", "c"}

// choose chooses what a caller acquires.
func (h *throng) choose(rng *rand.Rand, c *zklock.Client) wants {
	one := func() (zklock.Acquirer, string, zklock.Mode) {
		name := throngNames[rng.IntN(len(throngNames))]
		switch rng.IntN(6) {
		case 0, 1:
			return c.RWMutex(name).Reader(), name, zklock.Shared
		case 2:
			return c.RWMutex(name).Writer(), name, zklock.Exclusive
		}
		return c.Mutex(name), name, zklock.Exclusive
	}
	w := wants{modes: map[string]zklock.Mode{}}
	switch rng.IntN(5) {
	case 0:
		w.permits = 1 + rng.IntN(permits+1)
		w.a, w.modes["s"] = c.Semaphore("s", w.permits), zklock.Permit
	case 1:
		var all []zklock.Acquirer
		for range 2 + rng.IntN(2) {
			a, name, mode := one()
			if _, twice := w.modes[name]; !twice {
				all = append(all, a)
				w.modes[name] = mode
			}
		}
		w.a = zklock.All(all...)
	default:
		a, name, mode := one()
		w.a, w.modes[name] = a, mode
	}
	return w
}

// options chooses the options of an acquisition.
func (h *throng) options(rng *rand.Rand) (opts []zklock.AcquireOption) {
	for _, o := range []zklock.AcquireOption{
		zklock.WithoutHandover(), zklock.WithCandidacy(), zklock.WithMaxWaiters(1 + rng.IntN(h.callers)), zklock.WithFailFast(), zklock.WithFailBusy(), zklock.WithAsyncRelease(),
		zklock.WithWait(max(1, h.between(rng, h.wait))), zklock.WithRevocable(),
	} {
		if rng.IntN(6) == 0 {
			opts = append(opts, o)
		}
	}
	return opts
}
