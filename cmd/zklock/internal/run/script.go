//go:build unix

package run

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
)

// scriptShell runs scripts that do not name an interpreter.
const scriptShell = "/bin/sh"

// execute starts a process. A file that the system cannot execute, because its first line does not begin
// with "#!", is a script for the shell, as it is for env, timeout, nice and the shell itself.
func execute(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	pid, err = syscall.ForkExec(path, args, attr)
	if errors.Is(err, syscall.ENOEXEC) && isText(path) {
		return syscall.ForkExec(scriptShell, append([]string{scriptShell, path}, args[1:]...), attr)
	}
	return pid, err
}

// isText reports whether the first line of a file is text: programs for other machines have zero
// bytes there.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, 256))
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	return err == nil && bytes.IndexByte(line, 0) < 0
}
