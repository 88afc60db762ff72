package queue_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zklock/go-zklock/internal/testkit/znode"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// FuzzName: a name that is accepted has a path that ZooKeeper accepts. It is below the
// root, no other name has it, and no part of it passes for a queue node of any dialect.
func FuzzName(f *testing.F) {
	f.Add("orders/42", "orders%2F42")
	f.Add("a/../b", "..")
	f.Add("_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", "x/lock-0000000003")
	f.Add("\ue000", "\U0001f600")
	f.Fuzz(func(t *testing.T, a, b string) {
		const root = "/shop/locks"
		for _, d := range queue.Dialects {
			paths := map[string]string{}
			for _, name := range []string{a, b} {
				err := d.CheckName(name)
				if utf8.ValidString(name) == false && err == nil || len(name) > queue.MaxName && err == nil {
					t.Fatalf("%q is accepted in dialect %s", name, d.Name)
				}
				if err != nil {
					if !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < 0x20 || r == 0x7f }) {
						t.Fatalf("the error shows bytes of the name that have to be escaped: %q", err)
					}
					continue
				}
				path := root + "/" + d.Encode(name)
				below, ok := strings.CutPrefix(path, root+"/")
				if !ok || below == "" || !d.Literal() && strings.Contains(below, "/") {
					t.Fatalf("%q has the path %q in dialect %s", name, path, d.Name)
				}
				znode.CheckPath(t, path)
				if len(path) > len(root)+1+3*queue.MaxName {
					t.Fatalf("%q has a path of %d bytes", name, len(path))
				}
				for segment := range strings.SplitSeq(below, "/") {
					if _, other, ok := d.Parse(segment); (ok || other != nil) && d.Literal() {
						t.Fatalf("%q passes for a queue node in dialect %s", name, d.Name)
					}
				}
				if back, err := url.PathUnescape(below); !d.Literal() && (err != nil || back != name) {
					t.Fatalf("%q became %q, which decodes to %q, %v", name, below, back, err)
				}
				if other, taken := paths[path]; taken && other != name {
					t.Fatalf("%q and %q have the same path, %q, in dialect %s", name, other, path, d.Name)
				}
				paths[path] = name
			}
		}
	})
}
