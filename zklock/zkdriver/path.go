package zkdriver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock/driver"
)

// checkPath refuses, before it is sent, a path that no server accepts. The client
// checks paths too, but not those within a transaction. A path for a sequential znode
// may end in a slash: then the name is only the suffix.
func checkPath(path string, sequential bool) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: invalid path: %s", driver.ErrBadArguments, why)
	}
	if !strings.HasPrefix(path, "/") {
		return bad("not absolute")
	}
	if path == "/" {
		return nil
	}
	if !utf8.ValidString(path) {
		return bad("not UTF-8")
	}
	for _, r := range path {
		// The ranges are the server's: control characters, surrogates, private use,
		// and the specials at the end of the basic plane. Characters beyond the basic
		// plane are surrogates to a server.
		switch {
		case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return bad(fmt.Sprintf("character %U", r))
		}
	}
	for rest, more := path[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "":
			if !sequential || more {
				return bad("empty name between slashes or at the end")
			}
		case ".", "..":
			return bad("relative name")
		}
	}
	return nil
}
