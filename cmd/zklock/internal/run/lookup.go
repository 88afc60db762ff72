//go:build unix

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Errors of a command that cannot be started.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("command cannot be executed")
)

// LookUp returns the path of a command, which the shell would find under the same name. Its
// errors match ErrNotFound or ErrNotExecutable.
func LookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	if strings.Contains(name, "/") {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return "", fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		return "", fmt.Errorf("%w: %s: %v", ErrNotExecutable, name, errors.Unwrap(err))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && name != "" && !info.IsDir() {
			return "", fmt.Errorf("%w: %s has no permission for it", ErrNotExecutable, filepath.Join(dir, name))
		}
	}
	return "", fmt.Errorf("%w: %s is in no folder of PATH", ErrNotFound, name)
}

// startError returns the error for a start that the system has refused.
func startError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		// LookUp has found the file a moment ago. Either it was removed since, or the interpreter
		// that its first line names is missing.
		return fmt.Errorf("%w: %s or the interpreter that its first line names: %v", ErrNotFound, path, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EPERM),
		errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ETXTBSY):
		return fmt.Errorf("%w: %s: %v", ErrNotExecutable, path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}
