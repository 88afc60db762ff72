package driver

import "strconv"

// AnyVersion as a version means that the version does not matter.
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

	// EphemeralSequential znodes are both.
	EphemeralSequential

	// Container znodes are persistent, but once they had a child and have
	// none any more, the server removes them when it next looks (every minute
	// by default). Servers before 3.5.1 do not have them: ErrUnimplemented.
	Container
)

// Sequential reports whether the server appends a sequence number.
func (m Mode) Sequential() bool { return m == PersistentSequential || m == EphemeralSequential }

// Ephemeral reports whether the znode ends with its session.
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

	// OpCheck demands that a znode exists and has the given version.
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
	// Kind says what the operation does, and which of the fields below count.
	Kind OpKind

	// Path is the znode it is about; for a sequential create, without suffix.
	Path string

	// Data is the content, for OpCreate and OpSet.
	Data []byte

	// Mode is the kind of znode, for OpCreate; never Container.
	Mode Mode

	// ACL is the access list, for OpCreate.
	ACL []ACL

	// Version is the version demanded by OpDelete, OpSet and OpCheck.
	Version int32
}

// CreateOp is an operation that creates a znode.
func CreateOp(path string, data []byte, mode Mode, acl []ACL) Op {
	return Op{Kind: OpCreate, Path: path, Data: data, Mode: mode, ACL: acl}
}

// DeleteOp is an operation that deletes a znode.
func DeleteOp(path string, version int32) Op {
	return Op{Kind: OpDelete, Path: path, Version: version}
}

// SetOp is an operation that replaces a znode's data.
func SetOp(path string, data []byte, version int32) Op {
	return Op{Kind: OpSet, Path: path, Data: data, Version: version}
}

// CheckOp is an operation that fails its transaction unless the znode exists
// with that version. The session needs READ permission on the znode.
func CheckOp(path string, version int32) Op {
	return Op{Kind: OpCheck, Path: path, Version: version}
}

// OpResult is what one operation of a transaction yielded.
type OpResult struct {
	// Path is the created path, for OpCreate.
	Path string

	// Stat is the znode's Stat right after the operation, with the effect of
	// the operations before it in the same transaction, for OpSet.
	Stat Stat

	// Err is nil when the transaction was applied.
	Err error
}
