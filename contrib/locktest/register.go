package locktest

import (
	"sync"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// registers are what the locks protect: two registers for each name, whose accesses are not atomic by
// themselves. Each has the id of the acquisition that wrote last. The plain one accepts all accesses.
// The fenced one refuses those with a token older than the newest that it has seen.
type registers struct {
	history *history.Recorder

	mu    sync.Mutex
	names map[string]*register // guarded by mu
}

type register struct {
	plain, fenced int
	newest        history.Token // the newest token
}

func newRegisters(r *history.Recorder) *registers {
	return &registers{history: r, names: make(map[string]*register)}
}

// read reads both registers of a name for an acquisition, and notes what was read.
func (r *registers) read(e history.Event) { r.access(history.Read, e) }

// write writes the id of an acquisition to both registers of a name, and notes that.
func (r *registers) write(e history.Event) { r.access(history.Write, e) }

// access takes worker, id, name and token from e. The event is noted under the mutex, so that the
// history has the accesses in the order of the register. That does no I/O.
func (r *registers) access(kind history.Kind, e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.names[e.Name]
	if x == nil {
		x = new(register)
		r.names[e.Name] = x
	}
	e.Kind = kind
	e.Refused = e.Token != "" && e.Token.Compare(x.newest) < 0
	if !e.Refused {
		x.newest = x.newest.Max(e.Token)
	}
	if kind == history.Read {
		e.Value, e.Fenced = x.plain, x.fenced
	} else {
		x.plain = e.ID
		if !e.Refused {
			x.fenced = e.ID
		}
	}
	r.history.Note(e)
}
