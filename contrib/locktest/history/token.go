package history

import (
	"cmp"
	"strings"
)

// Token is a fencing token as text; "": none. Of two tokens the longer one is newer, and of two of the
// same length the one that sorts later as text. So numbers without leading zeros are in their order, and
// so are texts of a fixed length.
type Token string

// Compare returns -1 if t is older than u, 0 if they are the same, and +1 if t is newer. "" is older than
// all others.
func (t Token) Compare(u Token) int {
	return cmp.Or(cmp.Compare(len(t), len(u)), strings.Compare(string(t), string(u)))
}

// Max returns the newer one of two tokens.
func (t Token) Max(u Token) Token {
	if t.Compare(u) < 0 {
		return u
	}
	return t
}
