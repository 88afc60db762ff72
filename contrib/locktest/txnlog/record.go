package txnlog

import (
	"encoding/binary"
	"errors"
	"io"
)

// errNotWhole is the error of a record that ends before its last field, or has a length that no server writes.
var errNotWhole = errors.New("the record is not whole")

// record reads fields in ZooKeeper's encoding. After its first error, all fields are zero.
type record struct {
	r   io.Reader
	err error
}

// take returns the next n bytes.
func (r *record) take(n int) []byte {
	if r.err == nil && (n < 0 || n > maxEntry) {
		r.err = errNotWhole
	}
	if r.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err == io.EOF || err == io.ErrUnexpectedEOF {
		r.err = errNotWhole
	} else {
		r.err = err
	}
	return b
}

func (r *record) int32() int32 {
	if b := r.take(4); r.err == nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *record) int64() int64 {
	if b := r.take(8); r.err == nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *record) bool() bool {
	b := r.take(1)
	return r.err == nil && b[0] != 0
}

// bytes returns a buffer, nil if it has the length -1.
func (r *record) bytes() []byte {
	n := r.int32()
	if n == -1 || r.err != nil {
		return nil
	}
	return r.take(int(n))
}

func (r *record) string() string { return string(r.bytes()) }

// list calls each for the elements of a vector.
func (r *record) list(each func()) {
	for n := r.int32(); n > 0 && r.err == nil; n-- {
		each()
	}
}

// acl skips an access list.
func (r *record) acl() {
	r.list(func() {
		r.int32()
		r.bytes()
		r.bytes()
	})
}
