// Package znode checks paths of znodes for tests.
package znode

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// CheckPath fails the test for a path that ZooKeeper's PathUtils refuses. Java checks
// UTF-16 units, so it refuses every character that needs a surrogate pair.
func CheckPath(t testing.TB, path string) {
	t.Helper()
	if path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' || !utf8.ValidString(path) {
		t.Fatalf("path %q", path)
	}
	for _, c := range utf16.Encode([]rune(path)) {
		if c <= 0x1f || 0x7f <= c && c <= 0x9f || 0xd800 <= c && c <= 0xf8ff || 0xfff0 <= c {
			t.Fatalf("path %q has the character %#x", path, c)
		}
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			t.Fatalf("path %q has the segment %q", path, segment)
		}
	}
}
