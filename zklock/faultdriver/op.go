package faultdriver

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the method of a connector or session that an [Op] calls.
type Kind uint8

const (
	// Connect is a call of Connector.Connect.
	Connect Kind = iota + 1

	// Create is a call of Session.Create.
	Create

	// Delete is a call of Session.Delete.
	Delete

	// Get is a call of Session.Get.
	Get

	// Set is a call of Session.Set.
	Set

	// Children is a call of Session.Children.
	Children

	// Sync is a call of Session.Sync.
	Sync

	// Watch is a call of Session.Watch.
	Watch

	// Multi is a call of Session.Multi.
	Multi

	// Close is the first call of Session.Close.
	Close

	// WatchChildren is a call of Session.WatchChildren.
	WatchChildren

	// WatchExists is a call of Session.WatchExists.
	WatchExists
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Connect:
		return "connect"
	case Create:
		return "create"
	case Delete:
		return "delete"
	case Get:
		return "get"
	case Set:
		return "set"
	case Children:
		return "children"
	case Sync:
		return "sync"
	case Watch:
		return "watch"
	case Multi:
		return "multi"
	case Close:
		return "close"
	case WatchChildren:
		return "watch-children"
	case WatchExists:
		return "watch-exists"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Writes reports whether an operation of this kind can change the ensemble's znodes. It is true
// for every Multi, also for one that only has checks.
func (k Kind) Writes() bool { return k == Create || k == Delete || k == Set || k == Multi }

// Watches reports whether an operation of this kind arms a watch.
func (k Kind) Watches() bool { return k == Watch || k == WatchChildren || k == WatchExists }

// Op describes one operation to an [Injector], before it is carried out.
type Op struct {
	// Kind is the method that is called.
	Kind Kind

	// Session is the id of the session; 0 for Connect.
	Session int64

	// Paths are the paths of its znodes, one for each operation of a Multi, as the caller
	// gave them: the path of a sequential create has no suffix yet. Connect and Close have
	// no paths.
	Paths []string

	// Seq numbers the operations of all sessions of one [Wrap] as they begin, from 1 on.
	Seq uint64

	// Attempt is 1 for the first operation of its session with this Kind and these Paths,
	// 2 for the next one, and so on. With it an injector can recognize retries.
	Attempt int
}

// String describes the operation in one line.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s", o.Seq, o.Kind)
	if len(o.Paths) > 0 {
		b.WriteString(" " + strings.Join(o.Paths, ","))
	}
	if o.Session != 0 {
		fmt.Fprintf(&b, " session %#x", uint64(o.Session))
	}
	if o.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", o.Attempt)
	}
	return b.String()
}
