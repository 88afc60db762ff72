package zklock

import (
	"cmp"
	"fmt"
	"strconv"
)

// Token is a fencing token: each exclusive holder of a name has a greater token than all
// holders before it, except after a [Client.Break]. Pass it to the resource that the lock protects, and have the resource
// reject tokens older than the newest that it has seen. A lock alone cannot stop a late
// write by a holder that was paused between its last check and its write; a resource that checks tokens can.
//
// Comparing tokens of different names says nothing about their locks.
type Token struct {
	// Zxid is the id of the ZooKeeper transaction that created the queue node. It grows
	// with every transaction of the ensemble. Unlike the sequence numbers in node names,
	// it does not start again when the lock's znode was removed.
	Zxid int64

	// Turn counts the holders that got that queue node from another one, from 0; a writer that was
	// downgraded counts twice.
	Turn uint32
}

// Compare returns -1 if t is older than u, 0 if they are equal, and +1 if t is newer.
func (t Token) Compare(u Token) int {
	return cmp.Or(cmp.Compare(t.Zxid, u.Zxid), cmp.Compare(t.Turn, u.Turn))
}

// IsZero reports whether t is the zero Token. No lock has it.
func (t Token) IsZero() bool { return t == Token{} }

// String returns t in hexadecimal digits of fixed width, so that the order of the texts is
// that of Compare.
func (t Token) String() string { return fmt.Sprintf("%016x.%08x", uint64(t.Zxid), t.Turn) }

// MarshalText implements encoding.TextMarshaler in the form of String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler in the form of String.
func (t *Token) UnmarshalText(text []byte) error {
	u, err := ParseToken(string(text))
	if err == nil {
		*t = u
	}
	return err
}

// tokenLen is the length of a token as text: 16 digits, a dot, 8 digits.
const tokenLen = 16 + 1 + 8

// ParseToken parses the form that String returns. It accepts no other form, because the
// text may come from another process. The error quotes the beginning of the text.
func ParseToken(s string) (Token, error) {
	if len(s) == tokenLen && s[16] == '.' {
		zxid, err1 := strconv.ParseUint(s[:16], 16, 63)
		turn, err2 := strconv.ParseUint(s[17:], 16, 32)
		if t := (Token{int64(zxid), uint32(turn)}); err1 == nil && err2 == nil && t.String() == s {
			return t, nil
		}
	}
	return Token{}, fmt.Errorf("zklock: %.40q is not a token: want %q with hexadecimal digits", s, "zzzzzzzzzzzzzzzz.tttttttt")
}
