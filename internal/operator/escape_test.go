package operator

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"orders/42 für alle":    "orders/42 für alle",
		"a\nb\tc\r":             `a\nb\tc\r`,
		"\x1b[2J\x1b]0;title\a": `\x1b[2J\x1b]0;title\a`,
		"\u009b31m":             `\u009b31m`,
		"a\\nb":                 `a\\nb`,
		"\u202eabc\u200b":       `\u202eabc\u200b`,
		"\xff\xfe":              `\xff\xfe`,
		"\u00a0\u2028":          `\u00a0\u2028`,
		"\x00\x7f":              `\x00\x7f`,
		"日本 🔒":                  "日本 🔒",
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %s, want %s", text, got, want)
		}
	}
}

// A sentence that quotes a name, as errors do, is not escaped twice.
func TestPrintableSentence(t *testing.T) {
	name := "a\u202eb\\c"
	for text, want := range map[string]string{fmt.Sprintf("%q has run", name): `"a\u202eb\\c" has run`, name + " has run\x1b\xff": `a\u202eb\c has run\x1b\xff`} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %s, want %s", text, got, want)
		}
	}
}

// FuzzEscape: what is printed has only printable characters, and different texts stay different.
func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[0m", "a\\x1b[0m")
	f.Add("\xff", "\ufffd")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := Escape(a)
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("Escape(%q) has %q", a, got[i:])
		}
		if a != b && got == Escape(b) {
			t.Errorf("%q and %q are both %s", a, b, got)
		}
	})
}
