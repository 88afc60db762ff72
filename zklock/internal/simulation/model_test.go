package simulation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// model has what really happens in a run, according to the ensemble's log, and what the
// clients' handles report. It checks that the two agree.
type model struct {
	w *world

	journal struct {
		sync.Mutex
		fresh []memcontrol.Transaction
	}

	mu         sync.Mutex
	dirs       map[string]map[string]*queueNode // guarded by mu; contenders, by the lock's znode and by node
	registers  map[string]string                // guarded by mu; content of the registers
	written    map[string]*write                // guarded by mu; writes, by the new content
	writes     []*write                         // guarded by mu
	handles    []*grip                          // guarded by mu; those not released
	all        []*grip                          // guarded by mu
	losses     map[held]int                     // guarded by mu; calls of the Lost hook
	writer     map[string]zklock.Token          // guarded by mu; by name, a writer's newest token
	reader     map[string]zklock.Token          // guarded by mu; by name, a reader's newest token
	history    history                          // guarded by mu
	moved      bool                             // guarded by mu; there were transactions since the last check of all handles
	rewind     *rewind                          // guarded by mu; the newest restore of the ensemble; nil: there was none
	newest     map[lockOf]zklock.Token          // guarded by mu; each client's newest token of a writer, by name
	last       string                           // guarded by mu; the newest fault that struck all clients
	breakups   map[spot]*breakup                // guarded by mu; the places that an operator broke
	asking     []*asking                        // guarded by mu; acquisitions under way, in runs with max_contenders
	violations []string                         // guarded by mu
}

// queueNode is a contender in the ensemble's queue.
type queueNode struct {
	zxid    int64
	seq     int
	mode    zklock.Mode
	owner   int64     // its session
	born    time.Time // when it was created
	granted time.Time // when a check first saw it granted; zero: none has
	doomed  bool      // an operator has begun to delete it
	keep    bool      // it may be kept
	crowd   int       // by how many its queue was too long when it was created, if its client knows that
	label   nodeLabel
}

// write is what a transaction writes into a register, and what the holder had read there
// before.
type write struct {
	name    string
	read    string
	value   string
	grip    *grip
	call    int64 // when it was sent, in events
	done    int64 // when it succeeded; 0: it failed, or the outcome is unknown
	applied bool
}

// held is what the checks need of a handle.
type held interface {
	Valid() bool
	Mode() zklock.Mode
	Token() zklock.Token
	Name() string
	Err() error
}

// grip is a lock that a worker has got.
type grip struct {
	lock   held
	worker *worker
	client *zklock.Client
	doubt  bool                   // a transaction under it may still be applied
	modes  map[string]zklock.Mode // by name
	called int64                  // when it was asked for, in events
	since  int64                  // when it was granted
	seen   int64                  // when a check last found it valid
	owner  int                    // its number in the history
	era    int                    // how often the ensemble had lost transactions before the grant
	ended  int64                  // when a check first found it not valid; 0: not yet
	joined bool                   // it was acquired with Reenter
	stay   time.Duration          // how long it is held at least
	until  time.Time              // until when it is held at least
	back   bool                   // its release has begun
	gone   []string               // the names whose places under it an operator broke
	broken int64                  // since when there are any, in events
	label  bool                   // its holder labels it at once

	permits int // that it asked for; 0: it is not one
}

func newModel(w *world) *model {
	return &model{w: w, dirs: map[string]map[string]*queueNode{}, registers: map[string]string{}, written: map[string]*write{},
		losses: map[held]int{}, writer: map[string]zklock.Token{}, reader: map[string]zklock.Token{}, breakups: map[spot]*breakup{}, newest: map[lockOf]zklock.Token{}}
}

// committed records a transaction of the ensemble. The caller holds the ensemble's lock.
func (m *model) committed(tx memcontrol.Transaction) {
	m.journal.Lock()
	if m.w.ledger != nil {
		m.w.ledger.committed(tx)
	}
	m.journal.fresh = append(m.journal.fresh, tx)
	m.journal.Unlock()
	m.w.poke()
}

// catchUpLocked applies the transactions that were committed.
func (m *model) catchUpLocked() {
	m.journal.Lock()
	fresh := m.journal.fresh
	m.journal.fresh = nil
	m.journal.Unlock()
	m.rewindLocked()
	for _, tx := range fresh {
		if m.w.trace.verbose {
			m.w.trace.note("log %#x session %#x ended %v", tx.Zxid, tx.Session, tx.Ended)
		}
		for _, c := range tx.Changes {
			m.applyLocked(&tx, c)
		}
		if m.w.p.limit > 0 {
			m.crowdLocked(&tx)
		}
	}
	m.moved = m.moved || len(fresh) > 0
}

func (m *model) applyLocked(tx *memcontrol.Transaction, c memcontrol.Change) {
	if m.w.trace.verbose {
		m.w.trace.note("log %v %s", c.Kind, withoutGUID(c.Path))
	}
	if strings.HasPrefix(c.Path, "/register-") {
		m.writtenLocked(c.Path, string(c.Data))
		return
	}
	i := strings.LastIndexByte(c.Path, '/')
	dir, node := c.Path[:i], c.Path[i+1:]
	switch {
	case strings.HasSuffix(dir, "/"+queue.WaitsName): // registrations of waits, which are in no queue
	case c.Kind == driver.OpDelete:
		if n := m.dirs[dir][node]; n != nil && n.doomed && !tx.Ended {
			m.brokenLocked(dir, n, tx.At)
		}
		delete(m.dirs[dir], node)
		m.leftLocked(dir, tx.At)
	case c.Owner == 0: // a parent
	case c.Kind == driver.OpCreate:
		if m.dirs[dir] == nil {
			m.dirs[dir] = map[string]*queueNode{}
		}
		seq, _ := strconv.Atoi(node[len(node)-10:])
		mode := zklock.Exclusive
		switch {
		case strings.Contains(node, "__READ__"), strings.Contains(node, "__rlock__"):
			mode = zklock.Shared
		case strings.Contains(node, "__PERM"):
			mode = zklock.Permit
		}
		m.dirs[dir][node] = &queueNode{zxid: tx.Zxid, seq: seq, mode: mode, owner: c.Owner, born: tx.At, keep: strings.Contains(string(c.Data), `"keep":true`)}
		m.joinedLocked(dir)
	default:
		n := m.dirs[dir][node]
		if n.mode == zklock.Exclusive && strings.Contains(string(c.Data), `"mode":"shared"`) {
			n.mode = zklock.Shared
		}
		n.label.is = labelOf(c.Data)
		m.labelLocked(n)
	}
}

// writtenLocked checks that a register still had what the writer had read: the lock lets
// no other write in between.
func (m *model) writtenLocked(path, value string) {
	before := m.registers[path]
	m.registers[path] = value
	mine := m.written[value]
	if mine == nil {
		return
	}
	mine.applied = true
	if mine.read != before {
		m.violateLocked("fencing", "%s had %q when %q was written by %v, which had read %q", path, before, value, mine.grip, mine.read)
	}
}

func (m *model) violate(invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.violateLocked(invariant, format, args...)
}

func (m *model) violateLocked(invariant, format string, args ...any) {
	text := fmt.Sprintf("%v: %s: %s", time.Since(m.w.began), invariant, fmt.Sprintf(format, args...))
	m.violations = append(m.violations, text)
	m.w.trace.note("VIOLATION %s", text)
	if invariant == "exclusion" {
		m.w.tally.overlapped(m.last)
	}
}

// broke records the last fault, for the table. It struck p, or all clients if p is nil.
func (m *model) broke(kind string, p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p != nil {
		p.last = kind
		return
	}
	m.last = kind
	for _, p := range m.w.clients {
		p.last = kind
	}
}

// lost is the Lost hook of all clients.
func (m *model) lost(_ context.Context, e zklock.LostEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.losses[e.Lock]++
	m.judgeLossLocked(e)
}

// contenders returns the number of queue nodes.
func (m *model) contenders() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	n := 0
	for _, nodes := range m.dirs {
		n += len(nodes)
	}
	return n
}
