package fault

import "sync"

// gate is open, or closed until it is opened. Its zero value is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens again; nil: it is open; guarded by mu
}

// set closes or opens the gate.
func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case closed && g.opened == nil:
		g.opened = make(chan struct{})
	case !closed && g.opened != nil:
		close(g.opened)
		g.opened = nil
	}
}

// wait returns when the gate is open.
func (g *gate) wait() {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return
		}
		<-opened
	}
}
