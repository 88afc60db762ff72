package memdriver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dump describes the ensemble for a human reader: the servers with their roles, the
// sessions, and the leader's tree with the owners of ephemerals.
func (e *Ensemble) Dump() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, s := range e.servers {
		fmt.Fprintf(&b, "%s %s, zxid %#x, %d clients", s.addr(), s.role, s.tree.zxid, len(s.conns))
		if s.lag > 0 {
			fmt.Fprintf(&b, ", %v behind", s.lag)
		}
		b.WriteByte('\n')
	}
	shown := e.servers[0]
	if l := e.acting(); l != nil {
		shown = l.srv
		for _, id := range slices.Sorted(maps.Keys(l.sessions)) {
			t := l.sessions[id]
			fmt.Fprintf(&b, "session %#x, timeout %v, expires in %v", id, t.timeout, t.expires-e.clock.now.Sub(e.start))
			if t.owner != nil {
				fmt.Fprintf(&b, ", on %s", t.owner.addr())
			}
			b.WriteByte('\n')
		}
	}
	dumpNode(&b, shown.tree.root, 0)
	return b.String()
}

func dumpNode(b *strings.Builder, n *node, depth int) {
	b.WriteString(strings.Repeat("  ", depth))
	if depth == 0 {
		b.WriteString("/")
	} else {
		b.WriteString(n.name())
	}
	switch {
	case n.owner == containerOwner:
		b.WriteString(" container")
	case n.owner != 0:
		fmt.Fprintf(b, " owner %#x", n.owner)
	}
	fmt.Fprintf(b, " czxid %#x", n.czxid)
	if n.version > 0 {
		fmt.Fprintf(b, " version %d", n.version)
	}
	if len(n.data) > 0 {
		fmt.Fprintf(b, " %q", n.data)
	}
	b.WriteByte('\n')
	for _, child := range n.sorted() {
		dumpNode(b, child, depth+1)
	}
}

// String returns the role's name.
func (r role) String() string {
	switch r {
	case following:
		return "following"
	case leading:
		return "leading"
	}
	return "looking"
}
