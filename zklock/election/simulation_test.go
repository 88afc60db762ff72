package election_test

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

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Elections on three servers, in virtual time, with random faults of the network, the servers
// and the processes. In between the faults are mended, and nothing happens for a while.
const (
	simCandidates = 4
	simObservers  = 2
	simRounds     = 4
	simServers    = 3
	simTick       = 2 * time.Second
	simDistance   = time.Millisecond // one way
	simCalm       = 3 * time.Minute  // longer than an outage lasts, and the longest pause
)

// runsEnv has the number of runs; without it there are fewRuns. seedEnv has the seed of the first one; without it
// that is 0.
const (
	runsEnv = "ZKLOCK_RUNS"
	seedEnv = "ZKLOCK_SEED"
	fewRuns = 10
)

func TestSimulatedElections(t *testing.T) {
	corekit.Short(t) // an outage is as long as such a session lasts
	runs, first := fewRuns, 0
	for name, n := range map[string]*int{runsEnv: &runs, seedEnv: &first} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	var sum tally
	for seed := first; seed < first+runs; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sum.add(simulate(t, uint64(seed))) })
		})
	}
	t.Logf("%d runs: %+v\n%v", runs, sum, census.Of(census.Settings{Tick: simTick, Session: corekit.SessionTimeout, Servers: simServers,
		Distance: simDistance, Clients: simCandidates + simObservers + 1, Name: len("x")}))
	if runs >= fewRuns && (sum.Lost < runs || sum.Terms < 10*runs || sum.Unknown == 0 || sum.None == 0) {
		t.Errorf("%d runs had %+v: the faults hardly struck", runs, sum)
	}
}

// tally counts what happened.
type tally struct {
	Faults, Terms, Lost, Observed, None, Unknown int
}

func (a *tally) add(b tally) {
	a.Faults += b.Faults
	a.Terms += b.Terms
	a.Lost += b.Lost
	a.Observed += b.Observed
	a.None += b.None
	a.Unknown += b.Unknown
}

// simulation is one run.
type simulation struct {
	t        *testing.T
	rng      *rand.Rand // of the test's goroutine
	faults   int        // of the test's goroutine
	ensemble *memdriver.Ensemble
	mu       sync.Mutex
	leaders  map[*election.Term]context.Context // those whose function has not returned; guarded by mu
	last     zklock.Token                       // of the newest term; guarded by mu
	calm     bool                               // leaders stay; guarded by mu
	quick    bool                               // observers look at once, and terms last at least a second; guarded by mu
	begun    []zklock.Token                     // the terms since quick was set; guarded by mu
	off      bool                               // candidates do not begin again; guarded by mu
	stops    [simCandidates]context.CancelFunc  // each ends a candidate's Run, which then begins again; guarded by mu
	tally    tally                              // guarded by mu
}

func simulate(t *testing.T, seed uint64) tally {
	s := &simulation{t: t, rng: rand.New(rand.NewPCG(seed, 1)), leaders: map[*election.Term]context.Context{},
		ensemble: memdriver.New(memdriver.WithServers(simServers), memdriver.WithTickTime(simTick), memdriver.WithLatency(simDistance))}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range simCandidates {
		e := election.New(connect(t, s.ensemble), "x", election.WithValue(fmt.Sprint(i)), election.WithLogger(nil))
		rng := rand.New(rand.NewPCG(seed, uint64(10+i)))
		all.Go(func() {
			for ctx.Err() == nil {
				own, stop := context.WithCancel(ctx)
				if !s.begin(i, stop) {
					stop()
					<-ctx.Done()
					return
				}
				if err := e.Run(own, func(ctx context.Context, term *election.Term) error { return s.lead(ctx, term, rng) }); !errors.Is(err, context.Canceled) {
					t.Errorf("Run of candidate %d: %v", i, err)
				}
				stop()
			}
		})
	}
	op := election.New(connect(t, s.ensemble), "x")
	observers := make([]*simObserver, simObservers)
	for i := range observers {
		o := &simObserver{s: s, seen: make(map[zklock.Token]bool), rng: rand.New(rand.NewPCG(seed, uint64(100+i)))}
		observers[i] = o
		e := election.New(connect(t, s.ensemble), "x")
		all.Go(func() { o.observe(ctx, e) })
	}
	time.Sleep(time.Second)
	for range simRounds {
		s.breakThings()
		s.setCalm(true)
		time.Sleep(simCalm)
		synctest.Wait()
		l, err := op.Leader(t.Context())
		if err != nil {
			t.Errorf("after the faults: %v", err)
		}
		for i, o := range observers {
			if now, err := o.now(); err != nil || now.Token != l.Token {
				t.Errorf("observer %d reported %+v, %v last, and %+v leads", i, now, err, l)
			}
		}
		if n := nodes(s.ensemble); n != simCandidates {
			t.Errorf("%d nodes, want one for each of the %d candidates", n, simCandidates)
		}
		s.setCalm(false)
	}
	s.changes(observers)
	s.setCalm(true)
	s.switchOff()
	time.Sleep(simCalm)
	synctest.Wait()
	for i, o := range observers {
		if now, err := o.now(); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("observer %d reported %+v, %v last, and no candidate is left", i, now, err)
		}
	}
	if n := nodes(s.ensemble); n != 0 {
		t.Errorf("%d nodes, and no candidate is left", n)
	}
	cancel()
	all.Wait()
	time.Sleep(simCalm)
	if n := nodes(s.ensemble); n != 0 {
		t.Errorf("%d nodes after the end, want none", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Faults = s.faults
	for _, o := range observers {
		s.tally.add(o.tally)
	}
	return s.tally
}

// upTo returns a random time of less than d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

func (s *simulation) setCalm(calm bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = calm
}

// changes lets leaders change for some minutes without a fault, while observers look at once.
// Each term lasts until they have read it, and none is left out.
func (s *simulation) changes(observers []*simObserver) {
	s.mu.Lock()
	s.quick = true
	s.mu.Unlock()
	time.Sleep(2 * time.Minute) // until no observer pauses
	s.mu.Lock()
	s.begun = nil
	s.mu.Unlock()
	time.Sleep(10 * time.Minute)
	s.setCalm(true)
	time.Sleep(simCalm)
	synctest.Wait()
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if len(begun) < 5 {
		s.t.Errorf("%d terms in ten minutes, want more", len(begun))
	}
	for i, o := range observers {
		for _, token := range begun {
			if !o.hasSeen(token) {
				s.t.Errorf("observer %d left out the term %v", i, token)
			}
		}
	}
}

// switchOff ends all candidacies, and no other begins.
func (s *simulation) switchOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
	for _, stop := range s.stops {
		stop()
	}
}

// begin reports whether a candidate may begin again. stop ends its candidacy.
func (s *simulation) begin(i int, stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.off {
		s.stops[i] = stop
	}
	return !s.off
}

// lead is the work of a leader. It checks that it is the only one: no context of another leader is
// alive, and no other leader that still has its lease is working.
func (s *simulation) lead(ctx context.Context, term *election.Term, rng *rand.Rand) error {
	s.mu.Lock()
	for other, its := range s.leaders {
		if its.Err() == nil || other.Valid() {
			s.t.Errorf("the terms %v and %v are alive at the same time", other.Token(), term.Token())
		}
		if err := other.Err(); !errors.Is(err, zklock.ErrLost) {
			s.t.Errorf("the leader of the term %v, which ended with %v, works on while the term %v begins", other.Token(), err, term.Token())
		}
	}
	if term.Token().Compare(s.last) <= 0 {
		s.t.Errorf("token %v after %v", term.Token(), s.last)
	}
	s.last = term.Token()
	s.leaders[term] = ctx
	s.tally.Terms++
	s.begun = append(s.begun, term.Token())
	least := time.Duration(0)
	if s.quick {
		least = time.Second
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leaders, term)
		if errors.Is(term.Err(), zklock.ErrLost) {
			s.tally.Lost++
		}
	}()
	if rng.IntN(4) == 0 {
		_ = term.SetValue(ctx, fmt.Sprint("value ", term.Token())) // it may be lost
	}
	for stay := time.After(least + upTo(rng, 40*time.Second)); ; {
		select {
		case <-ctx.Done():
			time.Sleep(upTo(rng, 20*time.Second)) // cleans up, and takes its time
			return ctx.Err()
		case <-stay:
			stay = time.After(time.Second)
			s.mu.Lock()
			calm := s.calm
			s.mu.Unlock()
			if !calm {
				return nil
			}
		}
	}
}

// breakThings makes faults for some minutes, and mends everything.
func (s *simulation) breakThings() {
	var mends []func()
	for range 6 + s.rng.IntN(10) {
		mends = append(mends, s.fault())
		s.faults++
		time.Sleep(upTo(s.rng, 15*time.Second))
		if s.rng.IntN(2) == 0 {
			i := s.rng.IntN(len(mends))
			mends[i]()
			mends[i] = func() {}
		}
	}
	for _, mend := range mends {
		mend()
	}
}

// fault makes one fault, and returns the function that mends it.
func (s *simulation) fault() (mend func()) {
	e := s.ensemble
	cut := func(c memdriver.Cut) func() {
		if s.rng.IntN(4) == 0 {
			c = c.Reset()
		}
		e.Partition(c)
		return func() { e.Heal(c) }
	}
	ids, server := e.Sessions(), s.rng.IntN(simServers)
	if len(ids) == 0 {
		return func() {}
	}
	id := ids[s.rng.IntN(len(ids))]
	switch s.rng.IntN(12) { // no operator ends sessions or deletes nodes: that ends exclusion
	case 0:
		e.Restart(server)
	case 1:
		e.KillConnection(id)
	case 2:
		return memcontrol.Of(e).HoldRequests(id)
	case 3:
		return memcontrol.Of(e).HoldReplies(id)
	case 4:
		return cut(memdriver.AroundSession(id))
	case 5:
		return cut(memdriver.AroundServer(server))
	case 6:
		return cut(memdriver.AroundClients(server))
	case 7:
		return cut(memdriver.BetweenServers(server, (server+1)%simServers))
	case 8:
		memcontrol.Of(e).Lag(server, upTo(s.rng, 5*time.Second))
		return func() { memcontrol.Of(e).Lag(server, 0) }
	case 9:
		return e.Freeze(id)
	case 10, 11:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stops[s.rng.IntN(simCandidates)]()
	}
	return func() {}
}

// simObserver is one loop over an Observe.
type simObserver struct {
	s     *simulation
	rng   *rand.Rand
	tally tally // read it after observe has returned

	mu   sync.Mutex
	last election.Leader       // guarded by mu
	err  error                 // guarded by mu
	seen map[zklock.Token]bool // guarded by mu
}

func (o *simObserver) hasSeen(token zklock.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[token]
}

func (o *simObserver) now() (election.Leader, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last, o.err
}

// observe checks that tokens never fall, and that the sequence ends with its context only. It is
// often busy between two states.
func (o *simObserver) observe(ctx context.Context, e *election.Election) {
	var newest zklock.Token
	for l, err := range e.Observe(ctx) {
		o.mu.Lock()
		if o.last, o.err = l, err; err == nil {
			o.seen[l.Token] = true
		}
		o.mu.Unlock()
		switch {
		case err == nil:
			o.tally.Observed++
			if l.Token.Compare(newest) < 0 {
				o.s.t.Errorf("an observer was given the token %v after %v", l.Token, newest)
			}
			newest = l.Token
		case errors.Is(err, election.ErrNoLeader):
			o.tally.None++
		case errors.Is(err, zklock.ErrUnavailable):
			o.tally.Unknown++
		case ctx.Err() == nil:
			o.s.t.Errorf("an observer ended with %v", err)
		}
		o.s.mu.Lock()
		quick := o.s.quick
		o.s.mu.Unlock()
		if o.rng.IntN(3) == 0 && !quick {
			select {
			case <-time.After(upTo(o.rng, time.Minute)):
			case <-ctx.Done():
			}
		}
	}
	if ctx.Err() == nil {
		o.s.t.Error("an observer ended before its context")
	}
}
