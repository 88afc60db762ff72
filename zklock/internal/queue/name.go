package queue

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// MaxName is the longest lock name, in bytes. Encoded it can be three times as
// long, which together with the root and a contender's name stays far below
// what ZooKeeper's request limit allows.
const MaxName = 512

// CheckName enforces the rules for lock names. They are those of a relative
// path, so that a name means the same to every recipe and tool.
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

// CheckSegment refuses what must not stand between two slashes.
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

// Characters that ZooKeeper takes in no path, beside control characters: those
// for private use, the specials at the end of the basic plane, and all beyond it,
// which are two surrogates to a server.
const (
	firstPrivateRune = 0xe000
	lastPrivateRune  = 0xf8ff
	firstSpecialRune = 0xfff0
)

// RefusedRune returns the first of these characters in s, which is part of a
// path; one that is no UTF-8 counts as such.
func RefusedRune(s string) (rune, bool) {
	for _, r := range s {
		if firstPrivateRune <= r && r <= lastPrivateRune || r >= firstSpecialRune {
			return r, true
		}
	}
	return 0, false
}

const upperHex = "0123456789ABCDEF"

// encodeName maps a name, injectively, to one znode name: every byte outside
// [A-Za-z0-9_.-] becomes %XX, the slash too. So no lock's znode is ever below
// another's, and a name like "orders/42" cannot become a contender of "orders".
func encodeName(name string) string {
	plain := 0
	for i := range len(name) {
		if isPlain(name[i]) {
			plain++
		}
	}
	if plain == len(name) {
		return name
	}
	var b strings.Builder
	b.Grow(3*len(name) - 2*plain)
	for i := range len(name) {
		c := name[i]
		if isPlain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
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
