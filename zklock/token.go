package zklock

import (
	"cmp"
	"fmt"
	"strconv"
)

// Token is a fencing token: successive exclusive holders of a name have
// strictly increasing tokens. Hand it to the resource the lock protects, and
// let the resource refuse any token older than the newest it has seen; that
// closes the one gap no lock can close by itself, a holder that is paused
// between its last check and its write.
//
// Tokens of different names can be compared too but say nothing about locks.
type Token struct {
	// Zxid is the ensemble's transaction id that created the queue node. It
	// grows with every transaction of the ensemble and outlives the lock's
	// znode, unlike sequence suffixes, which start again with a new parent.
	Zxid int64

	// Turn counts the holders that shared that queue node one after another; a
	// writer that was downgraded counts as two.
	Turn uint32
}

// Compare returns -1, 0 or +1 as t is older than, the same as, or newer than u.
func (t Token) Compare(u Token) int {
	return cmp.Or(cmp.Compare(t.Zxid, u.Zxid), cmp.Compare(t.Turn, u.Turn))
}

// IsZero reports whether t is the zero Token, which no lock ever has.
func (t Token) IsZero() bool { return t == Token{} }

// String returns t as fixed-width hexadecimal, so that tokens sort as text in
// the order of Compare.
func (t Token) String() string { return fmt.Sprintf("%016x.%08x", uint64(t.Zxid), t.Turn) }

// MarshalText implements encoding.TextMarshaler in the form of String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler in the form of String.
func (t *Token) UnmarshalText(text []byte) error {
	u, err := ParseToken(string(text))
	if err != nil {
		return err
	}
	*t = u
	return nil
}

// tokenLen is the length of a token as text: 16 digits, a dot, 8 digits.
const tokenLen = 16 + 1 + 8

// ParseToken reads what String wrote, and nothing else: the text may come from
// another process, so no spelling but the canonical one is taken.
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
