package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// trusting is a client with a faulty lock, the control of the simulation. Its one mistake
// is that it takes a connected session for a live one. It is careful in all other
// respects: it watches the node ahead, lists the queue again after that, uses a node only
// with the session that created it, and gives everything up when its connection ends. The
// checks must find the mistake. Otherwise they would not find one of the library's either.
type trusting struct {
	w       *world
	session driver.Session
	serial  int
}

// trusted is a lock of such a client.
type trusted struct {
	session driver.Session
	gen     uint64
	name    string
	path    string
	zxid    int64

	mu   sync.Mutex
	over bool // guarded by mu
}

// Valid reports the lock as held while its connection lasts.
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

// acquire waits for the lock of a name. On any error it gives the session up.
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

// release deletes the lock's node. If that fails, it gives the session up.
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
	_ = c.session.Close(ctx) // if that fails, the session expires
	c.session = nil
}

// acquireTrusting makes the worker acquire a lock with a client of that kind.
func (k *worker) acquireTrusting() {
	if k.trusting == nil {
		k.trusting = &trusting{w: k.w}
	}
	name := k.w.name(k.w.rng.IntN(k.w.p.names))
	ctx, stop := context.WithCancel(background)
	k.stop = stop
	stay := k.stay
	connector := faultcontrol.Control(k.w.ensemble.Connector(), k.p.decide)
	k.assign("acquire "+name+" with the faulty lock", func() {
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

// releaseTrusting makes the worker release what it got by acquireTrusting.
func (k *worker) releaseTrusting(g *grip) {
	k.assign("release "+g.lock.Name(), func() {
		call := k.w.model.releasing(g)
		k.trusting.release(g.lock.(*trusted))
		k.w.model.released(g, call)
		k.has(nil)
	})
}

// A client that trusts its connection holds the lock while another client does, when a
// server that has lost its leader goes on answering. The checks of the simulation have to
// find that, and so has the judge of histories.
func TestSimulationCatchesTrustInTheConnection(t *testing.T) {
	defer corekit.SingleProcessor()()
	const seeds = 300
	enough := 3
	if corekit.Race {
		enough = 1 // the race detector makes the runs slow
	}
	seen, judged, seed := 0, 0, uint64(0)
	for seed < seeds && (seen < enough || judged < enough) {
		seed++
		w := play(t, seed, newTally(), options{trusting: true})
		if slices.ContainsFunc(w.model.violations, func(v string) bool {
			return strings.Contains(v, ": exclusion: ") && strings.Contains(v, " are valid at the same time")
		}) {
			seen++
		}
		if wrong, _ := w.model.judge(); len(wrong) > 0 {
			judged++
		}
	}
	t.Logf("two handles were valid at the same time in %d of %d runs; the judge refused the histories of %d", seen, seed, judged)
	if seen < enough || judged < enough {
		t.Errorf("want %d of each: the faults are too mild, or the checks do not find them", enough)
	}
}
