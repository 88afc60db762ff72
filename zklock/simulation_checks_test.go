package zklock_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zklock/go-zklock/zklock"
)

// valid asks handles without the model's lock: they have locks of their own.
func valid(handles []*grip) []bool {
	v := make([]bool, len(handles))
	for i, g := range handles {
		v[i] = g.lock.Valid()
	}
	return v
}

// untold asks handles whether they are not said to be over.
func untold(handles []*grip) []bool {
	open := make([]bool, len(handles))
	for i, g := range handles {
		open[i] = g.lock.Err() == nil
	}
	return open
}

// observe checks what has to hold at every moment.
func (m *model) observe() {
	m.mu.Lock()
	handles := slices.Clone(m.handles)
	m.mu.Unlock()
	v := valid(handles)
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := m.catchUpLocked()
	m.notedLocked(handles, v)
	if !moved || m.w.p.operator {
		return
	}
	for i, g := range handles {
		if v[i] && !g.back && !m.presentLocked(g) {
			m.violateLocked("exclusion", "%v is valid, and its queue node is gone", g)
		}
	}
}

// notedLocked keeps what handles were seen to be, and that one which was not
// held any more never is again.
func (m *model) notedLocked(handles []*grip, v []bool) {
	now := m.history.tick()
	for i, g := range handles {
		switch {
		case g.back:
		case !v[i] && g.ended == 0:
			g.ended = now
			m.history.lost(g, now)
			m.w.tally.lost(g.worker.p.last)
		case v[i] && g.ended != 0:
			m.violateLocked("ghost", "%v is valid again", g)
		case v[i]:
			g.seen = now
		}
	}
}

// presentLocked reports whether the nodes of a handle are in the queues.
func (m *model) presentLocked(g *grip) bool {
	for name := range g.modes {
		if m.nodeLocked(g, name) == nil {
			return false
		}
	}
	return true
}

func (m *model) nodeLocked(g *grip, name string) *queueNode {
	for _, n := range m.dirs["/zklock/"+name] {
		if n.zxid == g.lock.Token().Zxid {
			return n
		}
	}
	return nil
}

// granted checks a handle that a worker has just got: by the other handles, by
// the queue, and by the tokens before it.
func (m *model) granted(g *grip) {
	m.mu.Lock()
	handles := slices.Clone(m.handles)
	m.mu.Unlock()
	v := valid(handles)
	open := untold(handles)
	fine := g.lock.Valid()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.notedLocked(handles, v)
	g.since = m.history.tick()
	g.seen = g.since
	for name, mode := range g.modes {
		if !m.w.p.operator {
			if fine {
				m.aloneLocked(g, name, mode, handles, v)
				m.toldLocked(g, name, mode, handles, open)
			}
			if mode != zklock.Permit {
				m.tokenLocked(g, name, mode)
			}
		}
		m.queueLocked(g, name, mode, fine)
	}
	m.handles = append(m.handles, g)
	m.all = append(m.all, g)
	m.history.granted(g)
}

func excludes(a, b zklock.Mode) bool { return a == zklock.Exclusive || b == zklock.Exclusive }

// aloneLocked checks that no valid handle contradicts another.
func (m *model) aloneLocked(g *grip, name string, mode zklock.Mode, handles []*grip, v []bool) {
	taken := 0
	for i, other := range handles {
		theirs, ok := other.modes[name]
		if !v[i] || other.back || !ok || g.joined && other.worker == g.worker {
			continue
		}
		if other.lock.Mode() == zklock.Shared {
			theirs = zklock.Shared // downgraded
		}
		taken++
		if excludes(mode, theirs) {
			m.violateLocked("exclusion", "%s: %v is valid beside %v", name, g, other)
		}
	}
	if mode == zklock.Permit && taken >= permits {
		m.violateLocked("exclusion", "%s: %v is valid beside %d others", name, g, taken)
	}
}

// toldLocked checks that whoever worked under a lock that somebody else has now
// was told before: Done is closed, and contexts have ended.
func (m *model) toldLocked(g *grip, name string, mode zklock.Mode, handles []*grip, open []bool) {
	if m.w.p.trusting {
		return // nothing is told to those
	}
	for i, other := range handles {
		theirs, ok := other.modes[name]
		if !open[i] || other.back || !ok || g.joined && other.worker == g.worker {
			continue
		}
		if other.lock.Mode() == zklock.Shared {
			theirs = zklock.Shared // downgraded
		}
		if excludes(mode, theirs) {
			m.violateLocked("exclusion", "%s: %v holds, and %v was not told that it does not", name, g, other)
		}
	}
}

// tokenLocked checks that tokens rise.
func (m *model) tokenLocked(g *grip, name string, mode zklock.Mode) {
	token := g.lock.Token()
	if g.joined {
		return
	}
	if token.Compare(m.writer[name]) <= 0 {
		m.violateLocked("token", "%s: %v after a writer's %v", name, g, m.writer[name])
	}
	if mode == zklock.Exclusive {
		if token.Compare(m.reader[name]) <= 0 {
			m.violateLocked("token", "%s: %v after a reader's %v", name, g, m.reader[name])
		}
		m.writer[name] = token
	} else if token.Compare(m.reader[name]) > 0 {
		m.reader[name] = token
	}
}

// queueLocked checks a grant by the ensemble's queue: our node is in it, and
// everybody who came before us, and whom we have to wait for, has left. So what
// is held is held in the order of the log, and served in the order of the queue.
func (m *model) queueLocked(g *grip, name string, mode zklock.Mode, fine bool) {
	mine := m.nodeLocked(g, name)
	if mine == nil {
		if fine && !m.w.p.operator {
			m.violateLocked("exclusion", "%s: %v was granted, and its node is not in the queue", name, g)
		}
		return
	}
	ahead := 0
	for _, node := range slices.Sorted(maps.Keys(m.dirs["/zklock/"+name])) {
		n := m.dirs["/zklock/"+name][node]
		if n.seq >= mine.seq {
			continue
		}
		ahead++
		if excludes(mode, n.mode) && mode != zklock.Permit {
			m.violateLocked("exclusion", "%s: %v was granted, and %s is ahead of it", name, g, node)
		}
	}
	if mode == zklock.Permit && ahead >= permits {
		m.violateLocked("exclusion", "%s: %v was granted, and %d are ahead of it", name, g, ahead)
	}
}

// look notes what a handle is before something is done with it.
func (m *model) look(g *grip) int64 {
	v := g.lock.Valid()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notedLocked([]*grip{g}, []bool{v})
	return m.history.tick()
}

// releasing notes that a handle is about to be given back.
func (m *model) releasing(g *grip) int64 {
	call := m.look(g)
	m.mu.Lock()
	defer m.mu.Unlock()
	g.back = true
	return call
}

// released notes that it was given back.
func (m *model) released(g *grip, call int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handles = slices.DeleteFunc(m.handles, func(other *grip) bool { return other == g })
	if g.ended == 0 {
		m.history.ended(g, call, m.history.tick())
	}
}

// downgraded notes that a writer may have become a reader.
func (m *model) downgraded(g *grip, before zklock.Mode, call int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.ended != 0 && g.ended < call {
		return // it was lost before
	}
	if before == zklock.Exclusive && g.lock.Mode() == zklock.Shared && len(g.modes) == 1 {
		m.history.downgraded(g, call)
	}
}

// read notes what a register has at this moment, by the log, which is what value
// is going to be built on.
func (m *model) read(g *grip, name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	mine := &write{name: name, read: m.registers[register(name)], value: value, grip: g, call: m.history.tick()}
	m.written[value] = mine
	m.writes = append(m.writes, mine)
}

// wrote notes the outcome, as far as it is known.
func (m *model) wrote(value string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.written[value].done = m.history.tick()
	}
}

func (m *model) tick() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history.tick()
}

// finish checks what can be told at the end.
func (m *model) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.all {
		want := 0
		if errors.Is(g.lock.Err(), zklock.ErrLost) {
			want = 1
		}
		if m.losses[g.lock] != want {
			m.violateLocked("ghost", "%v ended with %v, and its loss was told %d times", g, g.lock.Err(), m.losses[g.lock])
		}
	}
}

// forget lets go of all handles. Whoever watches for handles that are dropped
// must not be what keeps them: the library knows its hooks, the hooks this model.
func (m *model) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.handles, m.losses, m.writes, m.written = nil, nil, nil, nil, nil
	for _, k := range m.w.workers {
		k.has(nil)
	}
}

func (g *grip) String() string {
	return fmt.Sprintf("%v %v of %s (worker %d of client %d, %v)", g.lock.Mode(), g.lock.Token(), g.lock.Name(), g.worker.id, g.worker.p.index, g.modes)
}
