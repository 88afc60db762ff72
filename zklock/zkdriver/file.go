package zkdriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// readFile reads a file that a key names. Its errors match those of package fs.
func readFile(key, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		// Only the reason: what it is wrapped in has the name, which fileShown
		// may keep back.
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return nil, fmt.Errorf("zkdriver: key %q: %s: %w", key, fileShown(key, name), err)
	}
	return data, nil
}

// fileShown is how a file that a key names appears in errors.
//
// Where it cannot be read, its path is what the reader needs to see. But the
// value of password_file may be no path: somebody may have put the password
// itself there, and the key into tls_key. What is a path for certain names a
// directory that exists, other than the one of the process and the top. A
// secret does not, by any likelihood; a file's name without a directory might be
// one. The value is in front of who wrote it, so all that is lost is a reminder.
func fileShown(key, name string) string {
	if key != keyPasswordFile && key != keyTLSKey {
		return name
	}
	dir := filepath.Dir(name)
	if info, err := os.Stat(dir); dir != "." && dir != ".." && dir != filepath.Dir(dir) && err == nil && info.IsDir() {
		return name
	}
	return "a file that is not shown, because it is in no directory that exists, or given without one, and may be the secret itself"
}
