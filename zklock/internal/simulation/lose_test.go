package simulation

import (
	"fmt"
	"maps"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
)

// rewind is what the ensemble had when its state was saved that it was restored to.
type rewind struct {
	dirs map[string]map[string]*queueNode
	at   time.Time // when the servers start with it; before, nothing is committed
	done bool
}

// lockOf is a name as a client knows it.
type lockOf struct {
	client *zklock.Client
	name   string
}

// loseTransactions saves the ensemble's state, and restores it later. The servers stay down until all
// sessions from before have ended at their clients: a restore that does not wait for that can give a
// lock to another client while its holder still has a lease.
func (w *world) loseTransactions(*process) string {
	if w.losing || w.ensemble.Leader() < 0 {
		return "not now"
	}
	w.losing = true
	restore := memcontrol.Of(w.ensemble).Backup()
	saved := w.model.save()
	down := w.between(simTimeout*3/2, 2*simTimeout)
	return fmt.Sprintf("those%s, and all servers down for %v", w.lasting("transactions lost", nil, func() {
		w.losing = false
		restore(down)
		up := time.Now().Add(down)
		w.model.rewound(saved, up)
		w.late = corekit.Later(w.late, up) // sessions that only the servers remember expire after that
	}), down)
}

// save returns the queues as they are.
func (m *model) save() map[string]map[string]*queueNode {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	return copyOfDirs(m.dirs)
}

func copyOfDirs(dirs map[string]map[string]*queueNode) map[string]map[string]*queueNode {
	saved := maps.Clone(dirs)
	for dir, nodes := range saved {
		saved[dir] = maps.Clone(nodes)
		for name, n := range nodes {
			saved[dir][name] = &queueNode{zxid: n.zxid, seq: n.seq, mode: n.mode, owner: n.owner, born: n.born, keep: n.keep}
		}
	}
	return saved
}

// rewound records a restore.
func (m *model) rewound(saved map[string]map[string]*queueNode, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.rewind = &rewind{dirs: saved, at: at}
}

// rewindLocked gives the queues their older state when the servers start with it. Tokens begin again.
func (m *model) rewindLocked() {
	if r := m.rewind; r != nil && !r.done && !time.Now().Before(r.at) {
		r.done = true
		m.dirs = r.dirs
		m.history.eras++
		clear(m.writer)
		clear(m.reader)
	}
}

// mayRegress reports whether clients may find that tokens went back.
func (m *model) mayRegress() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rewind != nil
}

// ownTokenLocked checks that a client never gets a smaller token for a name than before, whatever the
// ensemble has lost.
func (m *model) ownTokenLocked(g *grip, name string) {
	of := lockOf{g.client, name}
	if token, before := g.lock.Token(), m.newest[of]; token.Compare(before) <= 0 {
		m.violateLocked("token", "%s: %v was granted after the token %v of the same client", name, g, before)
	} else {
		m.newest[of] = token
	}
}

// eraToken returns the token as it would be if the ensemble's ids had gone on rising after each loss.
func (g *grip) eraToken() zklock.Token {
	token := g.lock.Token()
	token.Zxid += int64(g.era) << 48
	return token
}

// replaceRegressed restarts the processes whose clients acquire no more locks.
func (w *world) replaceRegressed() {
	for _, p := range w.clients {
		if !p.back.Swap(false) {
			continue
		}
		w.trace.note("client %d: tokens went back", p.index)
		w.tally.regressed++
		old := p.client
		if err := old.Healthy(); zklock.Reason(err) != "token_regression" {
			w.model.violate("error", "a client that acquires no more locks says that it is healthy: %v", err)
		}
		p.closing.Go(func() {
			if err := old.Close(); err != nil {
				w.model.violate("error", "close: %v", err)
			}
		})
		p.reopen(nil)
	}
}
