package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zklock/go-zklock/zklock"
)

// valid returns Valid of each handle. It is called without the model's mutex, since
// handles have mutexes of their own.
func valid(handles []*grip) []bool {
	v := make([]bool, len(handles))
	for i, g := range handles {
		v[i] = g.lock.Valid()
	}
	return v
}

// notOver reports for each handle that its holder was not notified of its end yet.
func notOver(handles []*grip) []bool {
	open := make([]bool, len(handles))
	for i, g := range handles {
		open[i] = g.lock.Err() == nil
	}
	return open
}

// observe checks what must hold at every moment.
func (m *model) observe() {
	m.mu.Lock()
	handles := slices.Clone(m.handles)
	m.mu.Unlock()
	v := valid(handles)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.notedLocked(handles, v)
	moved := m.moved
	m.moved = false
	if m.w.p.operator || !moved && len(m.breakups) == 0 {
		return
	}
	for i, g := range handles {
		if g.back {
			continue
		}
		if moved && v[i] && !m.presentLocked(g) {
			m.violateLocked("exclusion", "%v is valid, but its queue node is gone", g)
		}
		m.endsLocked(g)
	}
}

// notedLocked records which handles were valid. It checks that a handle that has stopped
// being valid is never valid again.
func (m *model) notedLocked(handles []*grip, v []bool) {
	now := m.history.tick()
	for i, g := range handles {
		switch {
		case g.back:
		case !v[i] && g.ended == 0:
			g.ended = now
			m.history.lost(g, now)
			if len(g.gone) > 0 {
				m.w.tally.lost("place broken")
				continue
			}
			m.w.tally.lost(g.worker.p.last)
			if m.w.p.quiet {
				m.violateLocked("break", "%v was lost, but no operator broke its place, and nothing else fails in this run", g)
			}
		case v[i] && g.ended != 0:
			m.violateLocked("ghost", "%v is valid again", g)
		case v[i]:
			g.seen = now
		}
	}
}

// presentLocked reports whether all nodes of a handle are in their queues, without those that
// an operator deleted.
func (m *model) presentLocked(g *grip) bool {
	for name := range g.modes {
		if m.nodeLocked(g, name) == nil && !slices.Contains(g.gone, name) {
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

// granted checks a handle that a worker has just got, against the other handles, the
// queue, and the tokens before it.
func (m *model) granted(g *grip) {
	m.mu.Lock()
	handles := slices.Clone(m.handles)
	m.mu.Unlock()
	v := valid(handles)
	open := notOver(handles)
	fine := g.lock.Valid()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.notedLocked(handles, v)
	g.since = m.history.tick()
	g.seen = g.since
	m.placedLocked(g)
	for name, mode := range g.modes {
		if !m.w.p.operator && !slices.Contains(g.gone, name) {
			if fine {
				m.aloneLocked(g, name, mode, handles, v)
				m.notifiedLocked(g, name, mode, handles, open)
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

// aloneLocked checks that no other handle that is valid excludes g, and that no more
// permits are held than any of their holders asked for.
func (m *model) aloneLocked(g *grip, name string, mode zklock.Mode, handles []*grip, v []bool) {
	taken, least := 0, g.permits
	for i, other := range handles {
		theirs, ok := other.modes[name]
		if !v[i] || other.back || !ok || g.joined && other.worker == g.worker || slices.Contains(other.gone, name) {
			continue
		}
		if other.lock.Mode() == zklock.Shared {
			theirs = zklock.Shared // downgraded
		}
		taken, least = taken+1, min(least, other.permits)
		if excludes(mode, theirs) {
			m.violateLocked("exclusion", "%s: %v and %v are valid at the same time", name, g, other)
		}
	}
	if mode == zklock.Permit && taken >= least {
		m.violateLocked("exclusion", "%s: %v and %d others are valid at the same time", name, g, taken)
	}
}

// notifiedLocked checks that the holders that g excludes were notified before g was
// granted that they hold no more: Done is closed, and contexts have ended.
func (m *model) notifiedLocked(g *grip, name string, mode zklock.Mode, handles []*grip, open []bool) {
	if m.w.p.trusting {
		return // those locks notify no holder
	}
	for i, other := range handles {
		theirs, ok := other.modes[name]
		if !open[i] || other.back || !ok || g.joined && other.worker == g.worker || slices.Contains(other.gone, name) {
			continue
		}
		if other.lock.Mode() == zklock.Shared {
			theirs = zklock.Shared // downgraded
		}
		if excludes(mode, theirs) {
			m.violateLocked("exclusion", "%s: %v holds, but the holder of %v was not notified that it is over", name, g, other)
		}
	}
}

// tokenLocked checks that tokens rise.
func (m *model) tokenLocked(g *grip, name string, mode zklock.Mode) {
	token := g.lock.Token()
	if g.joined {
		return
	}
	if mode == zklock.Exclusive {
		m.ownTokenLocked(g, name)
	}
	if token.Compare(m.writer[name]) <= 0 {
		m.violateLocked("token", "%s: %v was granted after a writer's token %v", name, g, m.writer[name])
	}
	if mode == zklock.Exclusive {
		if token.Compare(m.reader[name]) <= 0 {
			m.violateLocked("token", "%s: %v was granted after a reader's token %v", name, g, m.reader[name])
		}
		m.writer[name] = token
	} else if token.Compare(m.reader[name]) > 0 {
		m.reader[name] = token
	}
}

// queueLocked checks a grant against the ensemble's queue: g's node is in it, and every
// contender ahead of it that g has to wait for has left. So locks exclude each other in
// the order of the log, and are granted in the order of the queue.
func (m *model) queueLocked(g *grip, name string, mode zklock.Mode, fine bool) {
	mine := m.nodeLocked(g, name)
	if mine == nil {
		if fine && !m.w.p.operator && !slices.Contains(g.gone, name) {
			m.violateLocked("exclusion", "%s: %v was granted, but its node is not in the queue", name, g)
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
			m.violateLocked("exclusion", "%s: %v was granted, but %s is ahead of it", name, g, node)
		}
	}
	if mode == zklock.Permit && ahead >= g.permits {
		m.violateLocked("exclusion", "%s: %v was granted, but %d contenders are ahead of it", name, g, ahead)
	}
}

// look records whether a handle is valid, right before a call on it. It returns the time,
// in events.
func (m *model) look(g *grip) int64 {
	v := g.lock.Valid()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.notedLocked([]*grip{g}, []bool{v})
	return m.history.tick()
}

// releasing records that a handle is about to be released.
func (m *model) releasing(g *grip) int64 {
	call := m.look(g)
	m.mu.Lock()
	defer m.mu.Unlock()
	g.back = true
	return call
}

// released records that a handle was released.
func (m *model) released(g *grip, call int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handles = slices.DeleteFunc(m.handles, func(other *grip) bool { return other == g })
	if g.ended == 0 {
		m.history.ended(g, call, m.history.tick())
	}
}

// downgraded records that a writer may have become a reader.
func (m *model) downgraded(g *grip, before zklock.Mode, call int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.ended != 0 && g.ended < call || g.broken != 0 && g.broken < call {
		return // it was over before
	}
	if before == zklock.Exclusive && g.lock.Mode() == zklock.Shared && len(g.modes) == 1 {
		m.history.downgraded(g, call)
	}
}

// read records what a register has at this moment, according to the log. The worker is
// going to replace that by value.
func (m *model) read(g *grip, name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	mine := &write{name: name, read: m.registers[register(name)], value: value, grip: g, call: m.history.tick()}
	m.written[value] = mine
	m.writes = append(m.writes, mine)
}

// wrote records the outcome of a write, if it is known.
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

// finish checks what is known only at the end: that the Lost hook was called once for
// each handle that was lost, and for no other.
func (m *model) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.all {
		want := 0
		if errors.Is(g.lock.Err(), zklock.ErrLost) {
			want = 1
		}
		if m.losses[g.lock] != want {
			m.violateLocked("ghost", "%v ended with %v, and the Lost hook was called %d times for it, want %d", g, g.lock.Err(), m.losses[g.lock], want)
		}
	}
}

// forget removes the model's references to all handles. The library looks for handles
// that their callers have dropped. It refers to its hooks, and these refer to the model,
// so no handle that the model refers to would ever be collected.
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
