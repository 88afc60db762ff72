package integration_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// snippet is one code block of the README, or of docs, that a test compiles. Its name is in
// a comment in front of it: what is around it in testdata/readme/NAME.go.txt
// makes a program of it.
type snippet struct{ name, language, text string }

var (
	blocks = regexp.MustCompile("(?m)(?:^<!-- snippet: ([a-z-]+) -->\n)?^```([a-z]*)\n((?:.*\n)*?)```$")

	// place is where a snippet goes in its program.
	place = regexp.MustCompile(`(?m)^[\t ]*// SNIPPET$`)

	// expected is the comment at the end of a program that says what it prints.
	expected = regexp.MustCompile(`(?s)\n// Output:\n(.*)$`)
)

// snippets are the code blocks of the README and of docs in Go, or that change Go.
func snippets(t *testing.T) []snippet {
	t.Helper()
	var found []snippet
	for _, m := range blocks.FindAllStringSubmatch(guide(t), -1) {
		s := snippet{name: m[1], language: m[2], text: m[3]}
		if s.language != "go" && s.language != "diff" {
			continue
		}
		if s.name == "" {
			t.Errorf("a snippet has no name, and is not compiled:\n%s", s.text)
			continue
		}
		found = append(found, s)
	}
	return found
}

// side is the Go code before or after a change: lines with that sign, and those
// without one.
func side(diff string, sign byte) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] == sign || line[0] == ' ' {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

// TestReadmeSnippetsWork puts every snippet of the README and of docs into an empty module
// beside the project, which knows the project by a replace directive only. All
// have to compile, and those that say what they print are run.
func TestReadmeSnippetsWork(t *testing.T) {
	programs := make(map[string]string) // by name
	for _, s := range snippets(t) {
		switch {
		case s.name == "first":
			const url, driver = "zk://127.0.0.1:2181/shop/locks", "zklock/zkdriver"
			if !strings.Contains(s.text, url) || !strings.Contains(s.text, driver) {
				t.Fatalf("the first snippet has no %s and %s:\n%s", url, driver, s.text)
			}
			inMemory := strings.NewReplacer(url, "mem:///shop/locks", driver, "zklock/memdriver").Replace(s.text)
			programs["first"] = s.text // on a server below
			programs["first-mem"] = inMemory + "\n// Output:\n// alone with order 42, token 0000000100000005.00000000\n"
		case s.language == "diff":
			programs[s.name] = surround(t, s.name, side(s.text, '+'))
			if s.name != "from-redsync" { // which is no dependency of this module
				programs[s.name+"-before"] = surround(t, s.name+"-before", side(s.text, '-'))
			}
		default:
			programs[s.name] = surround(t, s.name, s.text)
		}
	}
	if len(programs) < 12 {
		t.Fatalf("%d programs only", len(programs))
	}

	mod := emptyModule(t)
	for name, text := range programs {
		dir := filepath.Join(mod, name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(dir, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	bin := filepath.Join(mod, "bin") + string(filepath.Separator)
	if out, err := run(mod, "go", "build", "-o", bin, "./..."); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ran := 0
	for name, text := range programs {
		m := expected.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		ran++
		want := strings.ReplaceAll(strings.ReplaceAll(m[1], "// ", ""), "//\n", "\n")
		out, err := run(mod, bin+name)
		if err != nil || out != want {
			t.Errorf("%s: %v, it printed\n%s\nwant\n%s", name, err, out, want)
		}
		t.Logf("%s printed:\n%s", name, out)
	}
	if ran < 9 {
		t.Errorf("%d programs say what they print, want the first one and that of each adapter at least", ran)
	}

	t.Run("first on a server", func(t *testing.T) {
		text := strings.Replace(programs["first"], "127.0.0.1:2181/shop/locks", sharedEnsemble(t).Hosts()+rootOf(t), 1)
		if err := os.WriteFile(filepath.Join(mod, "first", "main.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := run(mod, "go", "run", "./first")
		if err != nil || !regexp.MustCompile(`^alone with order 42, token [0-9a-f]{16}\.00000000\n$`).MatchString(out) {
			t.Errorf("%v, it printed\n%s", err, out)
		}
		t.Logf("it printed:\n%s", out)
	})
}

// surround makes a program of a snippet.
func surround(t *testing.T, name, text string) string {
	t.Helper()
	around, err := os.ReadFile(filepath.Join("testdata", "readme", name+".go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(place.FindAllIndex(around, -1)); n != 1 {
		t.Fatalf("%s has %d places for its snippet, want 1", name, n)
	}
	return place.ReplaceAllLiteralString(string(around), text)
}

// emptyModule makes a module that requires this one and nothing else. It has
// this one's checksums: its dependencies have to be the same.
func emptyModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gomod := fmt.Sprintf("module example.com/readme\n\ngo 1.26\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", module, root)
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"go.mod": []byte(gomod), "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
