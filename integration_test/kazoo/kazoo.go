// Package kazoo finds kazoo, a ZooKeeper client in Python. The tests and the benchmarks run its
// locks next to zklock's.
package kazoo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Env is the environment variable that names a folder with a release of kazoo, as pip
// installs it with --target. Without it kazoo is that of the distribution.
const Env = "ZKLOCK_TEST_KAZOO"

// Python is an interpreter that can import kazoo.
type Python struct {
	Program string   // name or path of the interpreter
	Env     []string // variables that it needs in addition to this process's
	Version string   // version of kazoo
}

// Find returns the interpreter. It tries /usr/bin/python3 first, because that has the
// distribution's packages. Another Python in the path may not have them. Its error names
// the missing part, and how to get it.
func Find() (Python, error) {
	var p Python
	if folder := os.Getenv(Env); folder != "" {
		if _, err := os.Stat(filepath.Join(folder, "kazoo")); err != nil { // Python would take another one
			return Python{}, fmt.Errorf("%s=%s has no kazoo: %w: set it to a folder that pip has installed kazoo in", Env, folder, err)
		}
		p.Env = []string{"PYTHONPATH=" + folder}
	}
	var err error
	for _, p.Program = range []string{"/usr/bin/python3", "python3"} {
		var version []byte
		cmd := p.Command("-c", "import kazoo.version; print(kazoo.version.__version__)")
		if version, err = cmd.Output(); err == nil {
			p.Version = string(bytes.TrimSpace(version))
			return p, nil
		}
	}
	return Python{}, fmt.Errorf("no kazoo found: %w: install the package python3-kazoo, or set %s", err, Env)
}

// Command returns a command that runs the interpreter with these arguments.
func (p Python) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.Program, args...)
	cmd.Env = append(os.Environ(), p.Env...)
	return cmd
}
