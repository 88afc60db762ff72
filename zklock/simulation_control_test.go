package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
)

// trusting is a lock as one would write it who takes connected for alive, and is
// careful in all other respects: it watches the node ahead, looks again, uses a
// node of a session only with that, and gives everything up when its connection
// ends. It is there to be caught: a simulation that finds nothing wrong with it
// would find nothing wrong with anything.
type trusting struct {
	w       *world
	session driver.Session
	serial  int
}

// trusted is what it holds.
type trusted struct {
	session driver.Session
	gen     uint64
	name    string
	path    string
	zxid    int64

	mu   sync.Mutex
	over bool // guarded by mu
}

// Valid trusts the connection.
func (l *trusted) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, _ := l.session.State()
	gen, _ := l.session.Conn()
	l.over = l.over || state != driver.Connected || gen != l.gen
	return !l.over
}

func (l *trusted) Mode() zklock.Mode   { return zklock.Exclusive }
func (l *trusted) Token() zklock.Token { return zklock.Token{Zxid: l.zxid} }
func (l *trusted) Name() string        { return l.name }
func (l *trusted) Err() error          { return nil }

// acquire waits for a name; on any error the session is given up.
func (c *trusting) acquire(ctx context.Context, connector driver.Connector, name string) (*trusted, error) {
	if c.session != nil {
		if state, _ := c.session.State(); state.Final() {
			c.close()
		}
	}
	if c.session == nil {
		s, err := connector.Connect(ctx, simTimeout)
		if err != nil {
			return nil, err
		}
		c.session = s
	}
	l, err := c.queue(ctx, name)
	if err != nil {
		c.close()
	}
	return l, err
}

func (c *trusting) queue(ctx context.Context, name string) (*trusted, error) {
	s, dir := c.session, "/zklock/"+name
	c.serial++
	guid := fmt.Sprintf("%016x%016x", uint64(s.ID()), c.serial)
	path, err := s.Create(ctx, dir+"/_c_"+guid+"-__WRIT__", nil, driver.EphemeralSequential, driver.OpenACL(driver.PermAll))
	if err != nil {
		return nil, err
	}
	own := strings.TrimPrefix(path, dir+"/")
	for {
		gen, _ := s.Conn()
		nodes, _, err := s.Children(ctx, dir)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
		i := slices.Index(nodes, own)
		switch {
		case i < 0:
			return nil, driver.ErrNoNode
		case i == 0:
			n, err := s.Get(ctx, path)
			if err != nil {
				return nil, err
			}
			return &trusted{session: s, gen: gen, name: name, path: path, zxid: n.Stat.Czxid}, nil
		}
		_, event, err := s.Watch(ctx, dir+"/"+nodes[i-1])
		if err == nil {
			select {
			case <-event:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil && !strings.Contains(err.Error(), driver.ErrNoNode.Error()) {
			return nil, err
		}
	}
}

// release gives a name back, with the session if that does not work at once.
func (c *trusting) release(l *trusted) {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(background, simTimeout)
	defer cancel()
	if err := l.session.Delete(ctx, l.path, driver.AnyVersion); err != nil && c.session == l.session {
		c.close()
	}
}

func (c *trusting) close() {
	if c.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(background, simTimeout)
	defer cancel()
	_ = c.session.Close(ctx) // it expires otherwise
	c.session = nil
}

// trust has a worker do what it can with a lock of that kind.
func (k *worker) trust() {
	if k.trusting == nil {
		k.trusting = &trusting{w: k.w}
	}
	name := k.w.name(k.w.rng.IntN(k.w.p.names))
	ctx, stop := context.WithCancel(background)
	k.stop = stop
	stay := k.stay
	connector := faultdriver.Control(k.w.ensemble.Connector(), k.p.decide)
	k.tell("trust "+name, func() {
		k.become(waiting)
		defer stop()
		g := &grip{worker: k, modes: map[string]zklock.Mode{name: zklock.Exclusive}, called: k.w.model.tick(), stay: stay}
		l, err := k.trusting.acquire(ctx, connector, name)
		if err != nil {
			k.has(nil)
			return
		}
		k.p.session.Store(l.session.ID())
		g.lock = l
		k.w.model.granted(g)
		k.has([]*grip{g})
	})
}

// distrust ends what trust began.
func (k *worker) distrust(g *grip) {
	k.tell("release "+g.lock.Name(), func() {
		call := k.w.model.releasing(g)
		k.trusting.release(g.lock.(*trusted))
		k.w.model.released(g, call)
		k.has(nil)
	})
}

// Whoever trusts the connection holds beside others, when a server that has lost
// its leader goes on answering. The simulation has to see that, and the judge of
// histories has to see it too.
func TestSimulationCatchesWhoTrustsTheConnection(t *testing.T) {
	defer lonely()()
	const seeds = 300
	enough := 3
	if raceEnabled {
		enough = 1 // it takes its time
	}
	seen, judged, seed := 0, 0, uint64(0)
	for seed < seeds && (seen < enough || judged < enough) {
		seed++
		w := play(t, seed, newTally(), options{trusting: true})
		if slices.ContainsFunc(w.model.violations, func(v string) bool {
			return strings.Contains(v, ": exclusion: ") && strings.Contains(v, " is valid beside ")
		}) {
			seen++
		}
		if wrong, _ := w.model.judge(); len(wrong) > 0 {
			judged++
		}
	}
	t.Logf("two held at a time in %d of %d runs; %d had a history that was no mutex's", seen, seed, judged)
	if seen < enough || judged < enough {
		t.Error("that is too few: the faults are too mild, or the checks blind")
	}
}
