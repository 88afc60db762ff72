package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestReapOfADirectory: a directory without sessions is fine, also if it has to be made. One that cannot
// be a session directory, and a bad command line, are errors with different codes. None of them needs a
// URL.
func TestReapOfADirectory(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	dir := t.TempDir()
	file, link, open := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "open")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"reap " + filepath.Join(dir, "new"), 0, ""},
		{"reap " + filepath.Join(dir, "new"), 0, ""},
		{"reap", 64, "zklock reap DIR"},
		{"reap a b", 64, "zklock reap DIR"},
		{"reap ", 64, "zklock reap DIR"},
		{"reap --wait=x " + dir, 64, "--wait"},
		{"reap " + file, 78, "not a directory"},
		{"reap " + link, 78, "symbolic link"},
		{"reap --wait " + open, 78, "0700"},
		{"reap " + filepath.Join(dir, "a", "b"), 78, "no such file"},
	} {
		code, out, stderr := command(t, e, strings.Split(c.args, " ")...)
		if code != c.code || out != "" || !strings.Contains(stderr, c.stderr) || (c.code == 0) != (stderr == "") {
			t.Errorf("%q: %d, %q, %q; want %d and %q", c.args, code, out, stderr, c.code, c.stderr)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory that was made: %v, %v", info, err)
	}
}
