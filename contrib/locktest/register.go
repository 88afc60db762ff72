package locktest

import (
	"strings"
	"sync"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// registers are what the locks protect: two registers for each name, whose accesses are not atomic by
// themselves. Each has the id of the acquisition that wrote last. The plain one accepts all accesses.
// The fenced one refuses those with a token older than the newest that it has seen. It compares the token of a shared
// hold with those of exclusive holds only.
type registers struct {
	history *history.Recorder

	mu    sync.Mutex
	names map[string]*register // guarded by mu
}

type register struct {
	plain, fenced int
	newest, alone history.Token // the newest token, and that of the exclusive holds
}

func newRegisters(r *history.Recorder) *registers {
	return &registers{history: r, names: make(map[string]*register)}
}

// access reads both registers of each name of a lock, or writes the id of the acquisition to them, and notes that. It reports
// whether a register has refused the access. The events are noted under the mutex, so that the history has the accesses in
// the order of the register. That does no I/O.
func (r *registers) access(kind history.Kind, p *process, l *lock) (refused bool) {
	if l.Permits > 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range strings.SplitSeq(l.Name, "+") {
		x := r.names[name]
		if x == nil {
			x = new(register)
			r.names[name] = x
		}
		e := history.Event{Kind: kind, Worker: p.number, ID: l.id, Name: name, Token: l.token}
		limit := x.newest
		if l.Shared {
			limit = x.alone
		}
		e.Refused = e.Token != "" && e.Token.Compare(limit) < 0
		if !e.Refused {
			x.newest = x.newest.Max(e.Token)
			if !l.Shared {
				x.alone = x.alone.Max(e.Token)
			}
		}
		if kind != history.Write {
			e.Value, e.Fenced = x.plain, x.fenced
		} else {
			x.plain = e.ID
			if !e.Refused {
				x.fenced = e.ID
			}
		}
		r.history.Note(e)
		refused = refused || e.Refused
	}
	return refused
}
