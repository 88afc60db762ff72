package zkdriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// readFile reads a file that a URL key names. Its errors match those of package fs.
func readFile(key, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		// Keep only the reason: the PathError around it contains the name, which
		// fileShown may hide.
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return nil, fmt.Errorf("zkdriver: key %q: %s: %w", key, fileShown(key, name), err)
	}
	return data, nil
}

// fileShown returns what errors show of a file that a URL key names.
//
// For a file that cannot be read, the user needs to see the path. But the value of
// password_file may be the password itself instead of a path, and the value of
// tls_key the key itself. A value is surely a path if its directory exists and is
// neither the working directory, its parent nor the root directory. A secret is very
// unlikely to look like that; a file name without a directory might be one. The user
// can see the value in the URL, so hiding it costs little. The other files are not secret, and their
// names are shown, unless the value is a PEM block, which may have a key in it, or a URL.
func fileShown(key, name string) string {
	const hidden = "the file (its name is not shown, since it may be the secret itself: to see the name, give a path in an existing directory)"
	switch {
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, "-----BEGIN"), strings.Contains(name, "://"):
		return hidden
	case key != keyPasswordFile && key != keyTLSKey:
		return name
	}
	dir := filepath.Dir(name)
	if info, err := os.Stat(dir); dir != "." && dir != ".." && dir != filepath.Dir(dir) && err == nil && info.IsDir() {
		return name
	}
	return hidden
}
