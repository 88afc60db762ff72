package txnlog

import (
	"path"
	"slices"
	"time"
)

// Znode is a znode at some moment.
type Znode struct {
	Path    string    // from the root
	Data    []byte    // nil: it has none
	Owner   int64     // the session of an ephemeral one; 0: it is persistent
	Zxid    int64     // of the transaction that has made it
	Created time.Time // of the leader's wall clock
}

// Tree has the znodes at some moment. The zero value is the tree of a new ensemble.
type Tree struct {
	// Zxid is that of the newest transaction in it.
	Zxid int64

	nodes    map[string]*Znode
	children map[string]map[string]*Znode // by parent and name
	owned    map[int64]map[string]*Znode  // by session and path
}

// Children returns the children of a znode, in no order. The caller must not change them.
func (t *Tree) Children(parent string) []*Znode {
	var all []*Znode
	for _, z := range t.children[parent] {
		all = append(all, z)
	}
	return all
}

// At returns a znode, nil if there is none.
func (t *Tree) At(path string) *Znode { return t.nodes[path] }

// Apply applies a transaction that is newer than the tree, and returns the znodes that it has deleted. One whose
// transaction the tree has already, as a snapshot may, is made or deleted again, which changes nothing.
func (t *Tree) Apply(x Txn) (deleted []*Znode) {
	t.Zxid = max(t.Zxid, x.Zxid)
	if slices.ContainsFunc(x.Ops, func(o Op) bool { return o.Kind == Failed }) {
		return nil
	}
	remove := func(path string) {
		if z := t.remove(path); z != nil {
			deleted = append(deleted, z)
		}
	}
	for _, o := range x.Ops {
		switch o.Kind {
		case Create:
			z := &Znode{Path: o.Path, Data: o.Data, Zxid: x.Zxid, Created: x.Time}
			if o.Ephemeral {
				z.Owner = x.Session
			}
			t.add(z)
		case Delete:
			remove(o.Path)
		case SetData:
			if z := t.nodes[o.Path]; z != nil {
				changed := *z
				changed.Data = o.Data
				t.add(&changed)
			}
		case CloseSession:
			paths := make([]string, 0, len(t.owned[x.Session]))
			for p := range t.owned[x.Session] {
				paths = append(paths, p)
			}
			slices.Sort(paths)
			for _, p := range paths {
				remove(p)
			}
		}
	}
	return deleted
}

// add adds a znode, or puts it in the place of one.
func (t *Tree) add(z *Znode) {
	if t.nodes == nil {
		t.nodes, t.children, t.owned = make(map[string]*Znode), make(map[string]map[string]*Znode), make(map[int64]map[string]*Znode)
	}
	t.nodes[z.Path] = z
	parent, name := path.Split(z.Path)
	put(t.children, path.Clean(parent), name, z)
	if z.Owner != 0 {
		put(t.owned, z.Owner, z.Path, z)
	}
}

func put[K comparable](m map[K]map[string]*Znode, key K, name string, z *Znode) {
	if m[key] == nil {
		m[key] = make(map[string]*Znode)
	}
	m[key][name] = z
}

// remove deletes a znode, and returns it; nil: there is none.
func (t *Tree) remove(p string) *Znode {
	z := t.nodes[p]
	if z == nil {
		return nil
	}
	delete(t.nodes, p)
	parent, name := path.Split(p)
	drop(t.children, path.Clean(parent), name)
	drop(t.owned, z.Owner, p)
	return z
}

func drop[K comparable](m map[K]map[string]*Znode, key K, name string) {
	delete(m[key], name)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
