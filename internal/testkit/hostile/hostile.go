// Package hostile has values of requests that try to name another lock than their own.
package hostile

import (
	"strings"
	"testing"
)

// values are values of a request. It is true for those that can be a part of a lock's name.
var values = map[string]bool{
	"a": true, "b": true, "a/b": true, "/": true, "//": true, "/a": true, "a/": true, "../a": true, "a/../b": true, "./": true, "...": true,
	"a/seats/b": true, "/seats/": true, "seats": true, "%": true, "%%": true, "%s": true, "%2F": true, "%2f": true, "%252F": true, "%25": true, "2F": true,
	"a%2Fb": true, "a%2Fseats%2Fb": true, "%2e%2e": true, "%00": true, "+": true, " ": true, "a b": true, "ä/ö": true, "?": true, "#": true, ":": true, "-": true,
	"": false, ".": false, "..": false, "\x00": false, "a\n": false, "\u0085": false, "\xff": false, "a\xc3": false, "\xa9": false,
	strings.Repeat("x", 600): false, strings.Repeat("/", 200): false, // too long; the second one with its escapes
}

// Pairs asks for the lock of each pair of values, with the format events/%s/seats/%s. ask returns the
// name of the lock, or "" if the request was refused as invalid. The test fails if two pairs have one
// name, if a name is of another form, and if the wrong pairs are refused.
func Pairs(t *testing.T, ask func(first, second string) (name string)) {
	t.Helper()
	owners := make(map[string][2]string)
	for first, ok := range values {
		for second, ok2 := range values {
			name := ask(first, second)
			if refused := name == ""; refused != !(ok && ok2) {
				t.Errorf("%.30q, %.30q: the lock %q; want a refusal: %t", first, second, name, !(ok && ok2))
			}
			if name == "" {
				continue
			}
			if s := strings.Split(name, "/"); len(s) != 4 || s[0] != "events" || s[2] != "seats" {
				t.Errorf("%q, %q: the lock %q is of another form", first, second, name)
			}
			if owner, taken := owners[name]; taken {
				t.Errorf("%q, %q: the lock %q is that of %q", first, second, name, owner)
			}
			owners[name] = [2]string{first, second}
		}
	}
}
