package driver

// Node is the content and the metadata of a znode, as read.
type Node struct {
	// Data is the znode's content. It belongs to the caller.
	Data []byte

	// Stat is the znode's metadata at the same moment (zxid) as Data.
	Stat Stat
}

// Stat is a znode's metadata, with ZooKeeper's field names and meanings. A zxid is the
// number of a transaction; later transactions have higher ones.
type Stat struct {
	// Czxid is the zxid of the transaction that created the znode. It is never 0: a client that learns
	// the zxid of its queue node neither from Multi nor from this acquires no lock. The search for
	// deadlocks, too, knows queue nodes by it.
	Czxid int64

	// Mzxid is the zxid of the transaction that last set its data.
	Mzxid int64

	// Pzxid is the zxid of the transaction that last created or deleted one
	// of its children.
	Pzxid int64

	// Ctime is when the znode was created, in milliseconds since the Unix epoch, by the
	// leader's wall clock.
	Ctime int64

	// Mtime is when its data was last set, in the same unit and by the same clock.
	Mtime int64

	// Version counts the changes of its data, and starts at 0. Setting the same data
	// again is a change.
	Version int32

	// Cversion counts the changes of its children: creations and deletions.
	Cversion int32

	// Aversion counts the changes of its ACL.
	Aversion int32

	// EphemeralOwner is the id of the session that an ephemeral znode belongs to. It is 0 for
	// all other znodes, containers included.
	EphemeralOwner int64

	// DataLength is the size of its data in bytes.
	DataLength int32

	// NumChildren is the number of its children.
	NumChildren int32
}

// Event is what a watch delivers; each watch delivers one.
type Event struct {
	// Type says what happened.
	Type EventType

	// Path is the path of the znode that was watched.
	Path string

	// Err is nil if something happened to the znode. If the session has ended instead, it
	// matches [ErrSessionExpired] or [ErrClosed].
	Err error
}

// EventType says what happened to a watched znode.
type EventType uint8

const (
	// EventSession means that the session has ended before anything happened to the
	// znode. Event.Err says how.
	EventSession EventType = iota

	// EventDeleted means that the znode was deleted, even if it was created again in the
	// same transaction.
	EventDeleted

	// EventChanged means that its data was set.
	EventChanged

	// EventCreated means that it was created. Only a watch on a znode that was missing can
	// deliver this.
	EventCreated

	// EventChildren means that one of its children was created or deleted. Only a watch on
	// children can deliver this.
	EventChildren
)

// String returns the event type's name in lower case.
func (t EventType) String() string {
	switch t {
	case EventDeleted:
		return "deleted"
	case EventChanged:
		return "changed"
	case EventCreated:
		return "created"
	case EventChildren:
		return "children"
	}
	return "session"
}
