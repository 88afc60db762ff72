package operator

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns a text as it is printed: names, labels and hosts come from other programs, and
// could have sequences that control a terminal. Characters that are not printed are escaped
// as in Go, and so are backslashes, so that the result is unambiguous.
func Escape(s string) string { return escape(s, needsEscape) }

// Printable is Escape for a sentence: what is quoted in it has escapes already, so backslashes stay as they are.
func Printable(s string) string { return escape(s, unprintable) }

// escape escapes the characters that match.
func escape(s string, match func(rune) bool) string {
	if !strings.ContainsFunc(s, match) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(0x100+uint64(s[i]), 16)[1:])
		case match(r):
			quoted := strconv.QuoteToASCII(string(r))
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// maxShort is how many characters of a text Short shows.
const maxShort = 40

// Short returns the beginning of a text, not escaped, for a table with further columns.
func Short(s string) string {
	if r := []rune(s); len(r) > maxShort {
		s = string(r[:maxShort-1]) + "…"
	}
	return s
}

// needsEscape reports whether Escape does not print a character as it is.
func needsEscape(r rune) bool { return r == '\\' || unprintable(r) }

// unprintable reports whether a character is never printed as it is. Besides control characters
// these are those that change the direction of a text or have no width.
func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
