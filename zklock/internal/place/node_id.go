package place

import "github.com/zklock/go-zklock/zklock/internal/queue"

// NodeID identifies a queue node for other clients, too: no two nodes below one znode have the same
// Zxid, and their order is that of the queue.
type NodeID struct {
	Path string     // of the lock's znode
	Node string     // the node's name below it
	Zxid int64      // the transaction that has created it; 0 if that is not known
	Mode queue.Mode // what others read of it
}

// Contenders returns the place's queue nodes in the order of its wants. ok is false if their nodes are
// not known yet, or are about to go.
func (p *Place) Contenders() (all []NodeID, ok bool) {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if s := p.progress.state(); s == opening || s >= leaving || p.Zxid == 0 {
		return nil, false
	}
	all = make([]NodeID, len(p.nodes))
	for i, c := range p.nodes {
		if c.node() == "" {
			return nil, false
		}
		all[i] = NodeID{Path: c.dir, Node: c.node(), Zxid: p.Zxid, Mode: c.kind.Mode}
	}
	return all, true
}
