package driver

// Node is what reading a znode yields.
type Node struct {
	// Data is the znode's content. It belongs to the caller.
	Data []byte

	// Stat is the znode's metadata at the same zxid as Data.
	Stat Stat
}

// Stat is a znode's metadata, with ZooKeeper's field names and meanings.
type Stat struct {
	// Czxid is the zxid of the transaction that created the znode.
	Czxid int64

	// Mzxid is the zxid of the transaction that last changed its data.
	Mzxid int64

	// Pzxid is the zxid of the transaction that last created or deleted one
	// of its children.
	Pzxid int64

	// Ctime is when it was created, in milliseconds since the Unix epoch by
	// the leader's wall clock.
	Ctime int64

	// Mtime is when its data was last changed, in the same terms.
	Mtime int64

	// Version counts changes of its data.
	Version int32

	// Cversion counts changes of its children.
	Cversion int32

	// Aversion counts changes of its ACL.
	Aversion int32

	// EphemeralOwner is the id of the session it ends with; 0 for a znode that
	// is not ephemeral, containers included.
	EphemeralOwner int64

	// DataLength is the size of its data in bytes.
	DataLength int32

	// NumChildren is how many children it has.
	NumChildren int32
}

// Event is what a watch delivers, once.
type Event struct {
	// Type says what happened.
	Type EventType

	// Path is the znode that was watched.
	Path string

	// Err is nil for a real event, and says why there will be none when the
	// session ended instead: it matches ErrSessionExpired or ErrClosed.
	Err error
}

// EventType says what happened to a watched znode.
type EventType uint8

const (
	// EventSession means that nothing happened to the znode: the session is
	// over, and Event.Err says how.
	EventSession EventType = iota

	// EventDeleted means that the znode was deleted.
	EventDeleted

	// EventChanged means that its data was set.
	EventChanged
)

// String returns the event type's name in lower case.
func (t EventType) String() string {
	switch t {
	case EventDeleted:
		return "deleted"
	case EventChanged:
		return "changed"
	}
	return "session"
}
