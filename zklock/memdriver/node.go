package memdriver

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// containerOwner is the ephemeralOwner that marks a container.
const containerOwner = math.MinInt64

// node is a znode of one tree.
type node struct {
	path     string
	parent   *node
	data     []byte       // never changed in place
	acl      []driver.ACL // never changed in place
	children map[string]*node

	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	// creations counts all children that were ever created. A server stores this
	// number as cversion. It is the next sequence suffix, and together with the
	// number of children it gives the Cversion that clients see.
	creations int32
	owner     int64
}

// name returns the last segment of the node's path.
func (n *node) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

// stat returns the Stat that clients see. Deletions are not counted when they happen:
// their number is the creations minus the children. So Cversion, which counts both,
// can be computed from the one counter that is stored.
func (n *node) stat() driver.Stat {
	children := int32(len(n.children))
	owner := n.owner
	if owner == containerOwner {
		owner = 0 // a server does not show it
	}
	return driver.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: n.creations*2 - children, Aversion: n.aversion,
		EphemeralOwner: owner, DataLength: int32(len(n.data)), NumChildren: children,
	}
}

// ephemeral reports whether the node is deleted at the end of a session.
func (n *node) ephemeral() bool { return n.owner != 0 && n.owner != containerOwner }

// adopt makes child one of n's children and returns it.
func (n *node) adopt(child *node) *node {
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	child.parent = n
	n.children[child.name()] = child
	return child
}

// sorted returns the children, sorted by name.
func (n *node) sorted() []*node { return slices.SortedFunc(maps.Values(n.children), byPath) }

func byPath(a, b *node) int { return cmp.Compare(a.path, b.path) }
