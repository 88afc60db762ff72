package zklockvet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mistakes are the packages of testdata with misuses, which also compile with the real packages.
var mistakes = []string{"outerctx", "fallback", "nestedacquire", "unreleased", "releasectx", "afterrelease", "lockcontext", "acquireloop"}

// want is the comment at the end of a line with a mistake; there are no others.
var want = regexp.MustCompile("// want `([^`]*)`$")

// diagnostic is a line that go vet prints: place and message.
var diagnostic = regexp.MustCompile(`^(\S+\.go:\d+):\d+: (.*)\n$`)

// TestVettool builds the command and passes it to go vet, for the same packages, in a module that
// imports the real packages of this repository and not those of testdata: these must not differ in
// what the analyzers look at.
func TestVettool(t *testing.T) {
	if os.Getenv("ZKLOCK_LONG") != "1" {
		t.Skip("long: a new tool makes go vet look at all dependencies again (ZKLOCK_LONG=1 runs this test)")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, tool := t.TempDir(), filepath.Join(t.TempDir(), "zklockvet")
	run := func(in string, env []string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(".", nil, "build", "-o", tool, "./cmd/zklockvet"); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.work.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module example.com/program\n\ngo 1.26.0\n")
	write("go.work.sum", string(sums))
	work := "go 1.26.0\n\nuse .\n"
	for _, module := range []string{"", "middleware/ginlock", "contrib/gocronlock", "interceptors"} {
		work += fmt.Sprintf("use %q\n", filepath.Join(root, module))
	}
	write("go.work", work)

	wanted := make(map[string]string) // by file and line
	for _, pkg := range mistakes {
		files, err := filepath.Glob(filepath.Join("testdata/src", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", pkg, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := pkg + "/" + filepath.Base(file)
			write(name, string(text))
			for i, line := range strings.Split(string(text), "\n") {
				if m := want.FindStringSubmatch(line); m != nil {
					wanted[fmt.Sprintf("%s:%d", name, i+1)] = m[1]
				}
			}
		}
	}
	if len(wanted) < 40 {
		t.Fatalf("testdata has only %d mistakes", len(wanted))
	}

	out, err := run(dir, []string{"GOWORK=" + filepath.Join(dir, "go.work"), "GOFLAGS="}, "vet", "-vettool="+tool, "./...")
	if err == nil {
		t.Errorf("go vet has found nothing:\n%s", out)
	}
	for line := range strings.Lines(out) {
		m := diagnostic.FindStringSubmatch(line)
		if m == nil {
			if !strings.HasPrefix(line, "#") {
				t.Errorf("go vet printed %q", line)
			}
			continue
		}
		message, ok := wanted[m[1]]
		if !ok || !regexp.MustCompile(message).MatchString(m[2]) {
			t.Errorf("%s: %s; want %q", m[1], m[2], message)
		}
		delete(wanted, m[1])
	}
	for where, message := range wanted {
		t.Errorf("%s: nothing was reported, want %q", where, message)
	}
}
