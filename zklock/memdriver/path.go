package memdriver

import (
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// validPath reports whether a server accepts path as the path of a znode. The rules
// are those of ZooKeeper's PathUtils, which checks UTF-16 units. It forbids
// surrogates, so every character beyond U+FFFF is invalid. U+FFFD is invalid too;
// malformed UTF-8 turns into it.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	segment := 1 // where the current segment starts
	ascii := true
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			c := path[i]
			if c < 0x20 || c == 0x7f {
				return false
			}
			ascii = ascii && c < 0x80
			continue
		}
		switch path[segment:i] {
		case "", ".", "..":
			return false
		}
		segment = i + 1
	}
	if ascii {
		return true
	}
	for _, r := range path {
		switch {
		case r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return false
		}
	}
	return true
}

// validCreatePath is validPath for a create: the path of a sequential znode may end
// in a slash, since the suffix follows.
func validCreatePath(path string, mode driver.Mode) bool {
	if mode.Sequential() && strings.HasSuffix(path, "/") {
		return validPath(path + "0")
	}
	return validPath(path)
}

// splitPath returns the parent's path and the last segment of a path with at
// least one slash.
func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
