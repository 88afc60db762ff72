package simulation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
)

// ledger is the judge of a driver: what the ensemble has committed, against what sessions say. Most
// mistakes of a driver do no harm to locks, since package zklock has a second line of defence: the
// model does not see them. The ledger holds each answer to package driver's words.
type ledger struct {
	w         *world
	following sync.WaitGroup

	mu     sync.Mutex
	opened []*witness            // guarded by mu
	nodes  map[string][]entry    // guarded by mu; the changes of a node, in order
	kids   map[string][]int64    // guarded by mu; the transactions that changed a node's children
	ended  map[int64]bool        // guarded by mu; sessions
	tries  map[string]*[2]int    // guarded by mu; by a new node's path: calls, and those that were not sent
	made   map[string]struct{}   // guarded by mu; paths of sequential nodes, without their numbers
	used   map[*wire.Conn]uint64 // guarded by mu; the generation that a connection had
}

// entry is a change of a node.
type entry struct {
	zxid, session int64
	kind          driver.OpKind
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, nodes: map[string][]entry{}, kids: map[string][]int64{}, ended: map[int64]bool{}, tries: map[string]*[2]int{}, made: map[string]struct{}{}, used: map[*wire.Conn]uint64{}}
}

// committed records a transaction. The caller holds the ensemble's lock.
func (l *ledger) committed(tx memcontrol.Transaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[tx.Session] = l.ended[tx.Session] || tx.Ended
	for _, c := range tx.Changes {
		l.nodes[c.Path] = append(l.nodes[c.Path], entry{tx.Zxid, tx.Session, c.Kind})
		if c.Kind == driver.OpSet {
			continue
		}
		parent := c.Path[:max(strings.LastIndexByte(c.Path, '/'), 1)]
		l.kids[parent] = append(l.kids[parent], tx.Zxid)
		if c.Kind == driver.OpCreate && len(c.Path) > 10 {
			l.made[c.Path[:len(c.Path)-10]] = struct{}{}
		}
	}
}

// newest returns a node's last change up to a transaction.
func (l *ledger) newest(path string, upTo int64) (last entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.nodes[path] {
		if e.zxid <= upTo {
			last = e
		}
	}
	return last
}

// witnessed judges the sessions of a connector.
type witnessed struct {
	driver.Connector
	l *ledger
}

func (c witnessed) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	began := time.Now()
	s, err := c.Connector.Connect(ctx, timeout)
	c.l.inTime(ctx, began, 0, err)
	if err != nil {
		return nil, err
	}
	judged := &witness{Session: s, l: c.l, id: s.ID()}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.opened = append(c.l.opened, judged)
	if c.l.w.net != nil {
		c.l.following.Go(judged.follow)
	}
	return judged, nil
}

// witness is a session whose answers are judged.
type witness struct {
	driver.Session
	l  *ledger
	id int64

	mu    sync.Mutex
	shown int64   // guarded by mu; the newest transaction that an answer has shown
	wrote string  // guarded by mu; the node that it wrote last
	armed []armed // guarded by mu

	answered time.Time // guarded by mu; when a call last succeeded; zero: none has
}

// armed is a watch: its node was read as it was after since.
type armed struct {
	path   string
	kids   bool
	since  int64
	events <-chan driver.Event
}

// look is what a session knows when a call begins.
type look struct {
	ctx               context.Context
	began             time.Time
	shown, generation int64
	conn              *wire.Conn
}

func (s *witness) look(ctx context.Context) look {
	generation, _ := s.Conn()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := look{ctx, time.Now(), s.shown, int64(generation), nil}
	if s.l.w.net != nil {
		at.conn = s.l.w.net.Of(s.id)
	}
	return at
}

func (s *witness) violate(format string, args ...any) {
	s.l.w.model.violate("driver", "session %#x: "+format, append([]any{s.id}, args...)...)
}

// done judges the end of a call. zxids are those that its answer shows.
func (s *witness) done(before look, err error, zxids ...int64) {
	if s.ID() != s.id {
		s.violate("its id is %#x now", s.ID())
	}
	if now := s.look(before.ctx); err == nil && now.conn != nil && now.conn == before.conn && now.generation == before.generation {
		s.l.mu.Lock()
		used, ok := s.l.used[now.conn]
		for other, generation := range s.l.used {
			ok = ok || other.Session() == s.id && generation == uint64(now.generation) && other != now.conn
		}
		s.l.used[now.conn] = uint64(now.generation)
		s.l.mu.Unlock()
		if ok && used != uint64(now.generation) {
			s.violate("two connections are of generation %d, or one is of two", now.generation)
		}
		if _, sent := s.Conn(); sent.After(now.conn.Heard()) {
			s.violate("the handshake was sent at %v and heard at %v", sent, now.conn.Heard())
		}
	}
	s.l.inTime(before.ctx, before.began, 0, err)
	if errors.Is(err, driver.ErrSessionExpired) {
		s.mu.Lock()
		given := s.l.w.wired.sasl && time.Since(s.answered) >= s.Timeout() // no server authenticates it: see giveup.go of zkdriver
		s.mu.Unlock()
		if s.l.w.net != nil && !s.l.w.net.Refused(s.id) && !given {
			s.violate("it says that it has expired, and no server has said so: %v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.answered = time.Now()
	}
	for _, z := range zxids {
		s.shown = max(s.shown, z)
	}
}

// read judges what a read shows of a node, against what earlier answers have shown.
func (s *witness) read(path string, before look, found bool, stat driver.Stat, err error) {
	if err != nil && !errors.Is(err, driver.ErrNoNode) {
		s.done(before, err)
		return
	}
	last := s.l.newest(path, before.shown)
	switch then := s.l.newest(path, 1<<62); {
	case last.zxid == 0:
	case found && stat.Mzxid < last.zxid, !found && last.kind != driver.OpDelete && then == last:
		s.violate("%s: found is %v, of %#x, but an answer has shown %#x, after the %v in %#x", withoutGUID(path), found, stat.Mzxid, before.shown, last.kind, last.zxid)
	}
	s.done(before, nil, stat.Czxid, stat.Mzxid, stat.Pzxid)
}

func (s *witness) list(path string, before look, stat driver.Stat, err error) {
	s.l.mu.Lock()
	for _, z := range s.l.kids[path] {
		if err == nil && z <= before.shown && z > stat.Pzxid {
			defer s.violate("%s: the list is of %#x, but an answer has shown %#x, after the change in %#x", path, stat.Pzxid, before.shown, z)
			break
		}
	}
	s.l.mu.Unlock()
	s.done(before, err, stat.Pzxid, stat.Czxid, stat.Mzxid)
}

func (s *witness) Get(ctx context.Context, path string) (driver.Node, error) {
	before := s.look(ctx)
	n, err := s.Session.Get(ctx, path)
	s.read(path, before, err == nil, n.Stat, err)
	return n, err
}

func (s *witness) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	before := s.look(ctx)
	n, events, err := s.Session.Watch(ctx, path)
	s.read(path, before, err == nil, n.Stat, err)
	if err == nil {
		s.arm(armed{path, false, n.Stat.Mzxid, events})
	}
	return n, events, err
}

func (s *witness) WatchExists(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	before := s.look(ctx)
	stat, found, events, err := s.Session.WatchExists(ctx, path)
	s.read(path, before, found, stat, err)
	if err == nil && found {
		s.arm(armed{path, false, stat.Mzxid, events})
	}
	return stat, found, events, err
}

func (s *witness) Children(ctx context.Context, path string) ([]string, driver.Stat, error) {
	before := s.look(ctx)
	names, stat, err := s.Session.Children(ctx, path)
	s.list(path, before, stat, err)
	return names, stat, err
}

func (s *witness) WatchChildren(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	before := s.look(ctx)
	names, stat, events, err := s.Session.WatchChildren(ctx, path)
	s.list(path, before, stat, err)
	if err == nil {
		s.arm(armed{path, true, stat.Pzxid, events})
	}
	return names, stat, events, err
}

func (s *witness) arm(a armed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = append(s.armed, a)
}

func (s *witness) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	before := s.look(ctx)
	for _, op := range ops {
		s.l.try(op, 0)
	}
	results, err := s.Session.Multi(ctx, ops)
	if err != nil {
		for _, op := range ops {
			if errors.Is(err, driver.ErrNotSent) {
				s.l.try(op, 1)
			}
		}
		s.done(before, err)
		return results, err
	}
	zxid := int64(0)
	for i, op := range ops {
		zxid = results[i].Zxid
		path := op.Path
		if op.Kind == driver.OpSet || op.Kind == driver.OpDelete {
			s.mu.Lock()
			s.wrote = path
			s.mu.Unlock()
		}
		if op.Kind == driver.OpCreate {
			path = results[i].Path
		}
		if e := s.l.newest(path, zxid); op.Kind != driver.OpCheck && (e.zxid != zxid || e.session != s.id) {
			s.violate("%v of %s in %#x: the log has %#x of session %#x", op.Kind, withoutGUID(path), zxid, e.zxid, e.session)
		}
	}
	s.heard(zxid)
	s.done(before, nil, zxid)
	return results, nil
}

// follow reads, on each new connection, the node that the session wrote last, until the session is over.
func (s *witness) follow() {
	read := uint64(1)
	for {
		state, changed := s.State()
		generation, _ := s.Conn()
		switch {
		case state.Final():
			return
		case state == driver.Connected && generation > read:
			read = generation
			s.mu.Lock()
			path := s.wrote
			s.mu.Unlock()
			if path != "" {
				_, _ = s.Get(background, path) // it is judged there
				continue
			}
		}
		<-changed
	}
}

// try counts calls that create a node with a number, or those of them that were not sent.
func (l *ledger) try(op driver.Op, outcome int) {
	if op.Kind != driver.OpCreate || !op.Mode.Sequential() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tries[op.Path] == nil {
		l.tries[op.Path] = new([2]int)
	}
	l.tries[op.Path][outcome]++
}

// heard judges the watches when a transaction was answered: each event of a change before it is there.
func (s *witness) heard(zxid int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []armed
	for _, a := range s.armed {
		if len(a.events) == 0 {
			select {
			case <-a.events: // its receiver has the event
				continue
			default:
			}
			if z := s.l.changed(a, zxid); z != 0 {
				s.violate("%s, read at %#x, has changed in %#x, before %#x, without an event", withoutGUID(a.path), a.since, z, zxid)
				continue
			}
			rest = append(rest, a)
		}
	}
	s.armed = rest
}

// changed returns the first transaction between two that ends a watch.
func (l *ledger) changed(a armed, before int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.nodes[a.path] {
		if e.zxid > a.since && e.zxid < before && (!a.kids || e.kind == driver.OpDelete) {
			return e.zxid
		}
	}
	for _, z := range l.kids[a.path] {
		if a.kids && z > a.since && z < before {
			return z
		}
	}
	return 0
}

// hasEnded reports whether the log has the end of a session.
func (l *ledger) hasEnded(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[id]
}

func (s *witness) Close(ctx context.Context) error {
	if state, _ := s.State(); state == driver.Expired {
		s.ended()
	}
	began := time.Now()
	err := s.Session.Close(ctx)
	s.l.inTime(ctx, began, 2*time.Millisecond, err)
	if err == nil && s.l.w.net != nil && !s.l.hasEnded(s.id) && !s.l.w.net.Refused(s.id) {
		s.violate("it says that it was closed, and lives")
	}
	return err
}

// ended judges the watches of a session that is over: each has its event.
func (s *witness) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.armed {
		if len(a.events) > 0 {
			continue // its receiver has not taken the event yet
		}
		select {
		case <-a.events:
		default:
			s.violate("the watch on %s has no event, and the session is over", withoutGUID(a.path))
		}
	}
}

// inTime judges when a call ended: with its context, if not before. Close may take a moment more.
func (l *ledger) inTime(ctx context.Context, began time.Time, more time.Duration, err error) {
	until, ok := ctx.Deadline()
	if late := time.Since(corekit.Later(until, began)); ok && ctx.Err() != nil && late > more {
		l.w.model.violate("driver", "a call ended %v later than its context: %v", late, err)
	}
}

// finish judges what is known when all sessions are over: each watch has ended, and what was not sent
// was not applied.
func (l *ledger) finish() {
	l.following.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.opened {
		s.ended()
	}
	for path, n := range l.tries {
		if _, made := l.made[path]; made && n[0] == n[1] {
			l.w.model.violate("driver", "%s was not sent, and was made", withoutGUID(path))
		}
	}
}
