package zkdriver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock/driver"
)

// checkPath refuses a path that no server accepts, before it is sent. The
// client checks paths too, but not those within a transaction. A path for a
// sequential znode may end in a slash: the name is then the suffix alone.
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
		// The ranges are the server's: controls, surrogates and private use,
		// and the specials at the end of the basic plane. What is beyond that
		// is surrogates to a server.
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
