package queue

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// MaxName is the length of the longest lock name, in bytes. The encoded name can be three
// times as long. Together with the root and a contender's name, that is far below
// ZooKeeper's limit for a request.
const MaxName = 512

// CheckName checks a lock name against the rules of all dialects; its error matches
// ErrInvalidName. The rules are those of a relative path, so that a name means the same to
// every recipe and tool.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", errs.ErrInvalidName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", errs.ErrInvalidName, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: it is not UTF-8", errs.ErrInvalidName)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if err := CheckSegment(segment); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrInvalidName, err)
		}
	}
	return nil
}

// CheckSegment checks the part of a name between two slashes.
func CheckSegment(s string) error {
	switch s {
	case "":
		return errors.New("it has an empty segment (a slash at an end, or two in a row)")
	case ".", "..":
		return fmt.Errorf("it has the segment %q", s)
	}
	for _, r := range s {
		if r < 0x20 || 0x7f <= r && r < 0xa0 {
			return fmt.Errorf("it has the control character %U", r)
		}
	}
	return nil
}

// Characters that ZooKeeper accepts in no path, in addition to control characters: those
// for private use, the specials at the end of the basic multilingual plane, and all
// characters beyond that plane, which a server sees as two surrogates.
const (
	firstPrivateRune = 0xe000
	lastPrivateRune  = 0xf8ff
	firstSpecialRune = 0xfff0
)

// RefusedRune returns the first of these characters in s, which is part of a path. Bytes that are
// not valid UTF-8 are such a character, too.
func RefusedRune(s string) (rune, bool) {
	for _, r := range s {
		if firstPrivateRune <= r && r <= lastPrivateRune || r >= firstSpecialRune {
			return r, true
		}
	}
	return 0, false
}

const upperHex = "0123456789ABCDEF"

// encodeName maps a name to the name of one znode; different names get different znodes.
// Every byte outside [A-Za-z0-9_.-], the slash included, becomes %XX. So no lock's znode is
// ever below another lock's, and the lock "orders/42" cannot be taken for a contender of
// the lock "orders".
func encodeName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || !isPlain(byte(r)) }) {
		return name
	}
	var b strings.Builder
	b.Grow(3 * len(name))
	for i := range len(name) {
		if c := name[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		}
	}
	return b.String()
}

// decodeName returns the lock name that encodeName maps to node. ok is false if there is
// none: node belongs to something else.
func decodeName(node string) (name string, ok bool) {
	name, err := url.PathUnescape(node)
	return name, err == nil && CheckName(name) == nil && encodeName(name) == node
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// Truncate cuts s to at most n bytes without splitting a character.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
