package simulation

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Settings of a run. In most runs only their proportion matters: sessions are short, so that more happens. The others
// have what users have: see asShipped.
const usualTimeout = 2 * time.Second

var (
	simTimeout = usualTimeout
	simTick    = simTimeout / 10 // of the servers
	simClient  = simTick         // tick_time; 0: the default
	simConnect = 3 * time.Second // connect_timeout
)

// lasting gives the next run other times, until the function that it returns is called.
func lasting(timeout, tick, client, connect time.Duration) (restore func()) {
	t, k, c, n := simTimeout, simTick, simClient, simConnect
	simTimeout, simTick, simClient, simConnect = timeout, tick, client, connect
	return func() { simTimeout, simTick, simClient, simConnect = t, k, c, n }
}

// asShipped gives the next run the settings of a user that sets none, with servers of ZooKeeper's usual tick.
func asShipped() (restore func()) {
	return lasting(30*time.Second, 2*time.Second, 0, 10*time.Second)
}

// world is one simulated run: clients of the real library on a model ensemble,
// in a synctest bubble, and the controller, which is the goroutine of the test.
//
// The controller makes every choice, with one seeded generator and while all other
// goroutines are blocked: what each worker does next, when each request goes on and what
// its outcome is, and what breaks. Requests that were begun at one instant are put in an
// order that does not depend on the order of goroutines, and go on at different instants.
// So a run can be repeated from its seed.
type world struct {
	seed     uint64
	p        profile
	rng      *rand.Rand
	ensemble *memdriver.Ensemble
	net      *wire.Network // nil if the clients use memdriver
	wired    wired
	ledger   *ledger    // nil if no driver is judged
	faults   []breakage // those that can happen
	clients  []*process
	workers  []*worker
	model    *model
	tally    *tally
	trace    trace
	recent   map[string]time.Time // when a kind of fault struck last, or ended

	kick     chan struct{} // cap 1: there is something for the controller to do
	began    time.Time
	next     time.Time         // when the next step is due
	lifts    []lift            // the ends of the present faults, by time
	late     time.Time         // when the last of the requests that are applied late is applied, and the last caller has given up
	strikes  map[*process]bool // its next create of a lone name is applied late
	lone     int               // the number of names that were used once
	breaking bool              // faults are injected
	ended    bool              // the controller takes no more steps
	losing   bool              // the ensemble is about to lose transactions
	helpers  sync.WaitGroup

	mu      sync.Mutex
	pending []*ask             // guarded by mu; requests that wait for a decision
	open    bool               // guarded by mu; requests go on without a decision
	owners  map[int64]*process // guarded by mu; by session, in runs with max_contenders
}

func newWorld(t *testing.T, seed uint64, tally *tally, o options) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{seed: seed, p: newProfile(rng), rng: rng, kick: make(chan struct{}, 1), began: time.Now(), breaking: true, tally: tally, recent: map[string]time.Time{}, strikes: map[*process]bool{}, owners: map[int64]*process{}}
	w.trace.began, w.trace.verbose = w.began, o.verbose
	if o.trusting {
		w.p.trusting, w.p.operator, w.p.breaker, w.p.quiet, w.p.dialect = true, false, false, false, "zklock"
		w.p.servers = 3
		w.p.beSlow() // only such runs can show the mistake
	}
	if o.shipped {
		w.p.travel(rng)
	}
	w.p.loses = seed%5 == 2 && !w.p.operator && !w.p.breaker && w.p.limit == 0 && !w.p.trusting // not drawn: the other runs stay what they are
	if o.hush {
		w.p.beHushed()
	}
	w.trace.note("%+v", w.p)
	w.model = newModel(w)
	w.next = w.began
	w.ensemble = memdriver.New(memdriver.WithServers(w.p.servers), memdriver.WithTickTime(simTick), memdriver.WithSyncLimit(w.p.syncLimit),
		memdriver.WithLatency(w.p.latency), memdriver.WithReapInterval(3*time.Second))
	memcontrol.Of(w.ensemble).Journal(w.model.committed)
	w.faults = breakages
	if !w.p.loses && (o.wire || seed%8 == 0) { // what the ensemble has lost, answers have shown; judging memdriver in each run would take a third of the time
		w.ledger = newLedger(w)
	}
	if o.wire {
		w.layWire(t)
	}
	registry, err := w.ensemble.Connector().Connect(t.Context(), 20*simTick)
	if err != nil {
		t.Fatal(err)
	}
	acl := driver.OpenACL(driver.PermAll)
	var paths []string
	if o.trusting {
		paths = append(paths, "/zklock")
	}
	for i := range w.p.names {
		paths = append(paths, register(w.name(i)))
		if o.trusting {
			paths = append(paths, "/zklock/"+w.name(i))
		}
	}
	for _, path := range paths {
		if _, err := registry.Create(t.Context(), path, nil, driver.Persistent, acl); err != nil {
			t.Fatal(err)
		}
	}
	if err := registry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range w.p.clients {
		p := &process{w: w, index: i}
		p.reopen(t)
		w.clients = append(w.clients, p)
		for range w.p.workers {
			w.workers = append(w.workers, newWorker(w, p, len(w.workers)))
		}
	}
	return w
}

func (w *world) name(i int) string { return "n" + strconv.Itoa(i) }

// register is the znode that a name guards.
func register(name string) string { return "/register-" + name }

// jitter depends only on the seed and the time, not on the order of the calls.
func (w *world) jitter(d time.Duration) time.Duration {
	h := rand.NewPCG(w.seed, uint64(time.Since(w.began)))
	return d/2 + time.Duration(h.Uint64()%uint64(d/2+1))
}

// poke wakes the controller, because there is something for it to do.
func (w *world) poke() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// lift is the end of a fault.
type lift struct {
	at   time.Time
	what string
	f    func()
}

// run is the controller, until a given time or until done returns true. At every instant that
// has something for it to do, it waits until all other goroutines are blocked, and then decides
// and checks.
func (w *world) run(until time.Time, done func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		synctest.Wait()
		w.trace.settle()
		w.settle()
		w.model.observe()
		now := time.Now()
		switch {
		case len(w.lifts) > 0 && !now.Before(w.lifts[0].at):
			l := w.lifts[0]
			w.lifts = w.lifts[1:]
			w.trace.note("lift %s", l.what)
			l.f()
			continue
		case done != nil && done() || !now.Before(until):
			return
		case !now.Before(w.next):
			w.next = now.Add(w.step())
			continue
		}
		wake := until
		if w.next.Before(wake) {
			wake = w.next
		}
		if len(w.lifts) > 0 && w.lifts[0].at.Before(wake) {
			wake = w.lifts[0].at
		}
		w.trace.setMark()
		timer.Reset(wake.Sub(now))
		select {
		case <-w.kick:
		case <-timer.C:
		}
	}
}

// step makes one worker act, or one fault happen, and returns the time until the next
// step. Without faults all workers act.
func (w *world) step() time.Duration {
	if w.ended {
		return time.Hour
	}
	w.replaceRegressed()
	if !w.breaking {
		for _, k := range w.workers {
			k.command()
		}
		return w.between(time.Millisecond, 5*time.Millisecond)
	}
	if w.rng.IntN(100) < w.p.breaks {
		w.inject()
	} else {
		w.workers[w.rng.IntN(len(w.workers))].command()
	}
	switch {
	case w.p.quiet:
		return w.pause() / 4
	case w.p.hush: // as much happens in a session timeout as in other runs
		return w.pause() * time.Duration(simTimeout/usualTimeout)
	}
	return w.pause()
}

// pause returns a time of a random order of magnitude; it is rarely longer than a session
// timeout.
func (w *world) pause() time.Duration {
	switch n := w.rng.IntN(100); {
	case n < 60:
		return w.between(time.Microsecond, 5*time.Millisecond)
	case n < 90:
		return w.between(5*time.Millisecond, 50*time.Millisecond)
	case n < 99:
		return w.between(50*time.Millisecond, 300*time.Millisecond)
	}
	return w.between(300*time.Millisecond, 3*time.Second)
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// calm ends all faults, and waits until all workers that waited were served and all
// holders have released. It returns how long that took.
func (w *world) calm() time.Duration {
	w.breaking = false
	w.trace.note("calm")
	for _, l := range w.lifts {
		l.f()
	}
	w.lifts = nil
	w.ensemble.Heal()
	for i := range w.p.servers {
		memcontrol.Of(w.ensemble).Lag(i, 0)
	}
	w.next = time.Now()
	began := time.Now()
	busy := func() bool {
		for _, k := range w.workers {
			if k.is() != idle {
				return true
			}
		}
		return false
	}
	patience := 6 * simTimeout
	w.run(began.Add(patience), func() bool { return !busy() })
	took := time.Since(began)
	if busy() {
		for _, k := range w.workers {
			if k.is() != idle {
				w.model.violate("liveness", "worker %d is %v %v after all faults had ended", k.id, k, patience)
			}
		}
		w.trace.note("%s", w.ensemble.Dump())
	}
	return took
}

// watches counts the armed watches, but for those on the znodes of names that may stay in runs where
// an operator deletes nodes, or clients keep names. If a client does not know yet that the node of its
// place was deleted, or gives a kept place up at that moment, it lists the queue for that place. The
// list arms a watch on the znode of the name, and this watch stays until a contender appears or the
// znode goes.
func (w *world) watches() (n int) {
	for path, watches := range memcontrol.Of(w.ensemble).Watched() {
		if withoutGUID(path) != path || !w.p.operator && !w.p.breaker && w.p.keep == 0 {
			n += watches
		}
	}
	return n
}

// close ends the run, and checks that nothing stays behind.
func (w *world) close() {
	clean := func() bool { return w.model.contenders() == 0 && w.watches() == 0 }
	w.ended = true
	settled := func() bool { return !time.Now().Before(w.late) && clean() }
	for again := true; again; {
		late := w.late // by then all late requests are applied, and the clients have to remove their nodes
		w.next = late
		w.run(corekit.Later(time.Now(), late).Add(2*simTimeout+w.p.keep), settled)
		again = w.late.After(late) // a caller that gives up has sent another one meanwhile
	}
	if !clean() {
		w.model.violate("leak", "%d queue nodes and %d watches stay behind\n%s", w.model.contenders(), w.watches(), w.ensemble.Dump())
	}
	for _, p := range w.clients {
		if st := p.client.Stats(); st.Held != 0 || st.Acquiring != 0 {
			w.model.violate("leak", "client %d counts %d locks held and %d acquisitions under way, want none", p.index, st.Held, st.Acquiring)
		}
	}
	w.mu.Lock()
	w.open = true
	pending := w.pending
	w.pending = nil
	w.mu.Unlock()
	for _, a := range pending {
		a.fate <- fate{}
	}
	for _, k := range w.workers {
		k.abandon()
	}
	w.helpers.Wait()
	for _, k := range w.workers {
		if k.trusting != nil {
			k.trusting.close()
		}
	}
	for _, p := range w.clients {
		if err := p.client.Close(); err != nil {
			w.model.violate("error", "close: %v", err)
		}
		p.closing.Wait()
	}
	if len(w.ensemble.Sessions()) > 0 { // a session that could not be closed expires
		time.Sleep(2 * simTimeout)
	}
	if n, ids := memcontrol.Of(w.ensemble).WatchCount(), w.ensemble.Sessions(); n != 0 || len(ids) != 0 {
		w.model.violate("leak", "%d watches and the sessions %x are left after all clients were closed", n, ids)
	}
	if w.net != nil {
		w.net.Close()
	}
	_ = w.ensemble.Close()
	w.model.finish()
	if w.ledger != nil {
		w.ledger.finish()
	}
}
