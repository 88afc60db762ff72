package txnlog

import (
	"bytes"
	"fmt"
	"time"
)

// Kind is what an operation of a transaction does.
type Kind uint8

// The kinds of operations.
const (
	Other         Kind = iota // changes neither znodes nor sessions, such as a check
	CreateSession             // begins a session
	CloseSession              // ends a session, with its ephemeral znodes
	Create                    // makes a znode
	Delete                    // deletes a znode
	SetData                   // changes the data of a znode
	Failed                    // changes nothing, nor does another operation of its transaction, which was refused
)

// Txn is a transaction.
type Txn struct {
	Zxid    int64     // the transaction's id, which rises
	Session int64     // which has asked for it; of CreateSession and CloseSession, which they are about
	Request int32     // its number in the session; 0 of the end of a session that the ensemble has expired
	Time    time.Time // of the leader's wall clock
	Ops     []Op      // one, or all those of a transaction of several
}

// Op is an operation of a transaction.
type Op struct {
	Kind      Kind          // what it does
	Path      string        // of Create, Delete and SetData
	Data      []byte        // of Create and SetData
	Ephemeral bool          // of Create: the znode ends with the session
	Timeout   time.Duration // of CreateSession
}

// The types of transactions in the log.
const (
	typeCreateSession   = -10
	typeCloseSession    = -11
	typeError           = -1
	typeCreate          = 1
	typeDelete          = 2
	typeSetData         = 5
	typeSetACL          = 7
	typeCheck           = 13
	typeMulti           = 14
	typeCreate2         = 15
	typeReconfig        = 16
	typeCreateContainer = 19
	typeDeleteContainer = 20
	typeCreateTTL       = 21
)

// parse returns the transaction of an entry of a log.
func parse(entry []byte) (Txn, error) {
	r := record{r: bytes.NewReader(entry)}
	t := Txn{Session: r.int64(), Request: r.int32()}
	t.Zxid = r.int64()
	t.Time = time.UnixMilli(r.int64())
	kind := r.int32()
	if kind != typeMulti {
		t.Ops = []Op{r.op(kind)}
	} else {
		r.list(func() {
			kind := r.int32()
			part := record{r: bytes.NewReader(r.bytes())}
			t.Ops = append(t.Ops, part.op(kind))
			if part.err != nil {
				r.err = part.err
			}
		})
	}
	if r.err != nil {
		return t, fmt.Errorf("transaction 0x%x of type %d: %w", t.Zxid, kind, r.err)
	}
	return t, nil // what follows, since 3.6 a digest of the tree, is of no use here
}

// op reads an operation of a type.
func (r *record) op(kind int32) Op {
	switch kind {
	case typeCreateSession:
		return Op{Kind: CreateSession, Timeout: time.Duration(r.int32()) * time.Millisecond}
	case typeCloseSession:
		return Op{Kind: CloseSession} // since 3.6 with the paths of its znodes, which the tree has, too
	case typeCreate, typeCreate2:
		o := Op{Kind: Create, Path: r.string(), Data: r.bytes()}
		r.acl()
		o.Ephemeral = r.bool()
		return o
	case typeCreateContainer, typeCreateTTL:
		return Op{Kind: Create, Path: r.string(), Data: r.bytes()}
	case typeDelete, typeDeleteContainer:
		return Op{Kind: Delete, Path: r.string()}
	case typeSetData, typeReconfig:
		return Op{Kind: SetData, Path: r.string(), Data: r.bytes()}
	case typeError:
		return Op{Kind: Failed}
	}
	return Op{} // typeSetACL, typeCheck, or a later version's: they change no znode that is read here
}
