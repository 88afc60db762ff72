package driver

import "strconv"

// AnyVersion, given as a version, means that the znode's version does not matter.
const AnyVersion int32 = -1

// Mode says what kind of znode to create.
type Mode uint8

const (
	// Persistent znodes stay until they are deleted.
	Persistent Mode = iota

	// Ephemeral znodes are removed with the session that created them.
	Ephemeral

	// PersistentSequential znodes are persistent and get a ten-digit suffix
	// that grows with every child created under the same parent.
	PersistentSequential

	// EphemeralSequential znodes are removed with their session and get such a suffix.
	EphemeralSequential

	// Container znodes belong to no session. A server removes one that has had a child
	// and has none left, when it next looks for them (every minute by default). Servers
	// before 3.5.1 do not have containers and answer with [ErrUnimplemented].
	Container
)

// Sequential reports whether the server appends a sequence number.
func (m Mode) Sequential() bool { return m == PersistentSequential || m == EphemeralSequential }

// Ephemeral reports whether the znode is removed with its session.
func (m Mode) Ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// String returns the mode's name in lower case.
func (m Mode) String() string {
	switch m {
	case Persistent:
		return "persistent"
	case Ephemeral:
		return "ephemeral"
	case PersistentSequential:
		return "persistent-sequential"
	case EphemeralSequential:
		return "ephemeral-sequential"
	case Container:
		return "container"
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}

// OpKind says what an Op of a transaction does.
type OpKind uint8

const (
	// OpCreate creates a znode.
	OpCreate OpKind = iota + 1

	// OpDelete deletes a znode.
	OpDelete

	// OpSet replaces a znode's data.
	OpSet

	// OpCheck fails the transaction if a znode is missing or has another version than the given
	// one.
	OpCheck
)

// String returns the kind's name in lower case.
func (k OpKind) String() string {
	switch k {
	case OpCreate:
		return "create"
	case OpDelete:
		return "delete"
	case OpSet:
		return "set"
	case OpCheck:
		return "check"
	}
	return "op(" + strconv.Itoa(int(k)) + ")"
}

// Op is one operation of a transaction. Make one with [CreateOp], [DeleteOp],
// [SetOp] or [CheckOp].
type Op struct {
	// Kind says what the operation does, and which of the fields below are used.
	Kind OpKind

	// Path is the path of the znode. For a sequential create it has no suffix yet.
	Path string

	// Data is the znode's new content, for OpCreate and OpSet.
	Data []byte

	// Mode is the kind of znode, for OpCreate. For Container see [Session].Multi.
	Mode Mode

	// ACL is the access list, for OpCreate.
	ACL []ACL

	// Version is the data version that OpDelete, OpSet and OpCheck require.
	Version int32
}

// CreateOp returns an operation that creates a znode. It fails with [ErrNodeExists] if the znode is
// there, and with [ErrNoNode] if its parent is not. [OpenACL] and [CreatorACL] make access lists.
func CreateOp(path string, data []byte, mode Mode, acl []ACL) Op {
	return Op{Kind: OpCreate, Path: path, Data: data, Mode: mode, ACL: acl}
}

// DeleteOp returns an operation that deletes a znode. It fails with [ErrBadVersion] if the znode does
// not have that version, which may be [AnyVersion], with [ErrNoNode] if there is no znode, and with
// [ErrNotEmpty] if it has children.
func DeleteOp(path string, version int32) Op {
	return Op{Kind: OpDelete, Path: path, Version: version}
}

// SetOp returns an operation that replaces a znode's data. It fails with [ErrBadVersion] if the znode
// does not have that version, which may be [AnyVersion], and with [ErrNoNode] if there is no znode.
func SetOp(path string, data []byte, version int32) Op {
	return Op{Kind: OpSet, Path: path, Data: data, Version: version}
}

// CheckOp returns an operation that changes nothing. It fails as SetOp does, and its transaction
// with it. The session needs READ permission on the znode.
func CheckOp(path string, version int32) Op {
	return Op{Kind: OpCheck, Path: path, Version: version}
}

// OpResult is the result of one operation of a transaction.
type OpResult struct {
	// Path is the created path, for OpCreate.
	Path string

	// Stat is the znode's Stat right after the operation, for OpSet. It includes the
	// effect of the operations before it in the same transaction, and not of those after
	// it: package zklock counts the children of a znode with a set after a create.
	Stat Stat

	// Zxid is the id of the transaction, the same for all its operations. So it is the
	// Czxid of a znode that the transaction created, and the Mzxid of one that it set. It
	// is 0 if the transaction was not applied.
	Zxid int64

	// Err is nil if the transaction was applied. Else it is the operation's own error, or
	// matches [ErrRolledBack] if another operation was at fault.
	Err error
}
