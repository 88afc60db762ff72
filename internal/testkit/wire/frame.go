package wire

import (
	"encoding/binary"
	"errors"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Operation codes of the protocol.
const (
	opCreate     = 1
	opDelete     = 2
	opExists     = 3
	opGet        = 4
	opSet        = 5
	opSync       = 9
	opPing       = 11
	opChildren   = 12
	opCheck      = 13
	opMulti      = 14
	opContainer  = 19
	opAuth       = 100
	opSetWatches = 101
	opSASL       = 102
	opClose      = -11
	opError      = -1
)

// codes are the protocol's numbers of errors.
var codes = map[error]int32{
	driver.ErrBadArguments: -8, driver.ErrUnimplemented: -6, driver.ErrNoNode: -101, driver.ErrNoAuth: -102,
	driver.ErrBadVersion: -103, driver.ErrNoChildrenForEphemerals: -108, driver.ErrNodeExists: -110,
	driver.ErrNotEmpty: -111, driver.ErrSessionExpired: -112, driver.ErrInvalidACL: -114,
}

// code returns the number of an error; that of a system error if it has none.
func code(err error) int32 {
	if err == nil {
		return 0
	}
	for known, n := range codes {
		if errors.Is(err, known) {
			return n
		}
	}
	return -1
}

// eventTypes are the protocol's numbers of events.
var eventTypes = map[driver.EventType]uint32{driver.EventCreated: 1, driver.EventDeleted: 2, driver.EventChanged: 3, driver.EventChildren: 4}

// fields reads the fields of a frame. After a read beyond the end, bad is set and each read returns
// zeros.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n < 0 || n > len(f.b) {
		f.bad = true
		return make([]byte, 8)
	}
	v := f.b[:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.take(4))) }
func (f *fields) int64() int64 { return int64(binary.BigEndian.Uint64(f.take(8))) }
func (f *fields) bool() bool   { return f.take(1)[0] != 0 }

func (f *fields) string() string {
	if n := f.int32(); n > 0 {
		return string(f.take(int(n)))
	}
	return ""
}

func (f *fields) strings() (all []string) {
	for n := f.int32(); n > 0 && !f.bad; n-- {
		all = append(all, f.string())
	}
	return all
}

// op reads an operation of a transaction, or a request that is one.
func (f *fields) op(code int32) (op driver.Op, known bool) {
	op.Path = f.string()
	switch code {
	case opCreate, opContainer:
		op.Kind, op.Data = driver.OpCreate, []byte(f.string())
		for n := f.int32(); n > 0 && !f.bad; n-- {
			op.ACL = append(op.ACL, driver.ACL{Perms: driver.Perm(f.int32()), Scheme: f.string(), ID: f.string()})
		}
		op.Mode = driver.Mode(f.int32()) // the numbers are the same
	case opDelete, opCheck:
		op.Kind, op.Version = map[int32]driver.OpKind{opDelete: driver.OpDelete, opCheck: driver.OpCheck}[code], f.int32()
	case opSet:
		op.Kind, op.Data, op.Version = driver.OpSet, []byte(f.string()), f.int32()
	default:
		return op, false
	}
	return op, true
}

// request reads the body of a request. known is false for an operation that these servers do not have.
func (f *fields) request(code int32) (r memcontrol.Request, known bool) {
	switch code {
	case opGet, opExists, opChildren:
		r.Kind = map[int32]memcontrol.RequestKind{opGet: memcontrol.Get, opExists: memcontrol.Exists, opChildren: memcontrol.Children}[code]
		r.Path, r.Watch = f.string(), f.bool()
	case opSync:
		r.Kind, r.Path = memcontrol.Sync, f.string()
	case opPing:
		r.Kind = memcontrol.Ping
	case opClose:
		r.Kind = memcontrol.Close
	case opAuth:
		r.Kind = memcontrol.Auth
		f.int32()
		if f.string() != "digest" {
			return r, false
		}
		r.User, r.Password = cutUser(f.string())
	case opSetWatches:
		r.Kind, r.Seen = memcontrol.SetWatches, f.int64()
		for list := range r.Watches {
			r.Watches[list] = f.strings()
		}
	case opMulti:
		r.Kind = memcontrol.Multi
		for {
			kind, done, _ := f.int32(), f.bool(), f.int32()
			if done || f.bad {
				return r, true
			}
			op, known := f.op(kind)
			if !known {
				return r, false
			}
			r.Ops = append(r.Ops, op)
		}
	default:
		op, known := f.op(code)
		r.Path, r.Ops = op.Path, []driver.Op{op}
		return r, known
	}
	return r, true
}

// body appends the body of a successful answer.
func body(b []byte, code int32, q memcontrol.Request, a memcontrol.Answer) []byte {
	switch code {
	case opGet:
		b = stat(text(b, string(a.Node.Data)), a.Node.Stat)
	case opExists:
		b = stat(b, a.Node.Stat)
	case opChildren:
		b = binary.BigEndian.AppendUint32(b, uint32(len(a.Names)))
		for _, name := range a.Names {
			b = text(b, name)
		}
		b = stat(b, a.Node.Stat)
	case opCreate:
		b = text(b, a.Results[0].Path)
	case opContainer: // as create2
		b = stat(text(b, a.Results[0].Path), a.Results[0].Stat)
	case opSet:
		b = stat(b, a.Results[0].Stat)
	case opSync:
		b = text(b, q.Path)
	}
	return b
}

// results appends the results of a transaction.
func results(b []byte, q memcontrol.Request, a memcontrol.Answer) []byte {
	header := func(kind int32, done byte, err int32) {
		b = binary.BigEndian.AppendUint32(b, uint32(kind))
		b = binary.BigEndian.AppendUint32(append(b, done), uint32(err))
	}
	for i, op := range q.Ops {
		switch {
		case a.Err != nil:
			err := int32(0) // rolled back
			if i == a.Failed {
				err = code(a.Err)
			} else if i > a.Failed {
				err = -2
			}
			header(opError, 0, err)
			b = binary.BigEndian.AppendUint32(b, uint32(err))
		case op.Kind == driver.OpCreate && op.Mode == driver.Container:
			header(15, 0, 0) // create2
			b = stat(text(b, a.Results[i].Path), a.Results[i].Stat)
		case op.Kind == driver.OpCreate:
			header(opCreate, 0, 0)
			b = text(b, a.Results[i].Path)
		case op.Kind == driver.OpSet:
			header(opSet, 0, 0)
			b = stat(b, a.Results[i].Stat)
		default:
			header(map[driver.OpKind]int32{driver.OpDelete: opDelete, driver.OpCheck: opCheck}[op.Kind], 0, 0)
		}
	}
	header(-1, 1, -1)
	return b
}

func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func stat(b []byte, s driver.Stat) []byte {
	for _, v := range []int64{s.Czxid, s.Mzxid, s.Ctime, s.Mtime} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range []int32{s.Version, s.Cversion, s.Aversion} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(s.EphemeralOwner))
	b = binary.BigEndian.AppendUint32(b, uint32(s.DataLength))
	b = binary.BigEndian.AppendUint32(b, uint32(s.NumChildren))
	return binary.BigEndian.AppendUint64(b, uint64(s.Pzxid))
}

// framed puts the length in front of a frame.
func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...)
}
