package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAnnounceTurnsTheDocumentsIntoThoseOfARelease runs the step of make release that changes documents
// in a copy of the project, twice: as the first release, if there is none yet, and as the one after that.
// It prints the lines that change.
func TestAnnounceTurnsTheDocumentsIntoThoseOfARelease(t *testing.T) {
	t.Parallel()
	root := copyOfTheProject(t)
	addEntry(t, root)
	before := documentsOf(t, root)
	today := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	changed, err := announce(t.Context(), root, "v0.99.0", today)
	if err != nil {
		t.Fatal(err)
	}
	after := documentsOf(t, root)
	for _, path := range changed {
		t.Log(path + "\n" + changes(before[path], after[path]))
	}

	for path, text := range after {
		for _, gone := range []string{"-replace", "/path/to/clone", "first release -->", "not been released", "no release yet", "@VERSION"} {
			if strings.Contains(text, gone) {
				t.Errorf("%s still has %q", path, gone)
			}
		}
		if before[path] != text && !slices.Contains(changed, path) {
			t.Errorf("%s changed, and was not named", path)
		}
	}
	for _, m := range released {
		path := strings.TrimPrefix(string(m)+"/README.md", "/")
		if want := "`go get " + m.path() + "@v0.99.0`"; after[path] != "" && !strings.Contains(after[path], want) {
			t.Errorf("%s does not have %s", path, want)
		}
	}
	if !strings.Contains(after["CHANGELOG.md"], "## [Unreleased]\n\n## [0.99.0] - 2026-11-27\n") {
		t.Errorf("the changelog begins with\n%.700s", after["CHANGELOG.md"])
	}

	// It is called again if the rest of make release failed.
	if again, err := announce(t.Context(), root, "v0.99.0", today.AddDate(0, 0, 1)); err != nil || len(again) > 0 {
		t.Errorf("the second time it changed %q, %v, want nothing", again, err)
	}

	// The next release has a section of its own, and its version is where the first one was.
	if _, err := announce(t.Context(), root, "v0.99.1", today); err == nil || !strings.Contains(err.Error(), "[Unreleased]") {
		t.Errorf("without an entry: %v, want an error that names the section", err)
	}
	addEntry(t, root)
	if _, err := announce(t.Context(), root, "v0.99.1", today.AddDate(0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	next := documentsOf(t, root)
	if !strings.Contains(next["CHANGELOG.md"], "## [Unreleased]\n\n## [0.99.1] - 2026-12-27\n\n- An entry.\n\n## [0.99.0] - 2026-11-27\n") {
		t.Errorf("the changelog begins with\n%.700s", next["CHANGELOG.md"])
	}
	for path, text := range next {
		if old := "@v0.99.0"; strings.Contains(text, old) {
			t.Errorf("%s still has %s", path, old)
		}
	}
}

// TestFirstProgramOfAReleasedReadme does in an empty folder what the README says after a release: the
// module comes by its version from a proxy, and the program works, in memory.
func TestFirstProgramOfAReleasedReadme(t *testing.T) {
	t.Parallel()
	root := copyOfTheProject(t)
	if _, err := announce(t.Context(), root, "v0.99.0", time.Now()); err != nil {
		t.Fatal(err)
	}
	readme := documentsOf(t, root)["README.md"]
	program := regexp.MustCompile("(?s)<!-- snippet: first -->\n```go\n(.*?)```").FindStringSubmatch(readme)
	get := regexp.MustCompile("`(go get " + regexp.QuoteMeta(module) + "@[^`]*)`").FindStringSubmatch(readme)
	if program == nil || get == nil {
		t.Fatal("the README has no first program, or no line that gets the module")
	}

	p := proxy{root: root, folder: t.TempDir(), version: "v0.99.0"}
	if _, _, err := p.add(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	env, err := p.environment(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := strings.NewReplacer("zk://127.0.0.1:2181/shop/locks", "mem://shop", "zklock/zkdriver", "zklock/memdriver").Replace(program[1])
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"go mod init example.com/shop", get[1], "go run .", "go list -m " + module} {
		words := strings.Fields(line)
		out, err := output(t.Context(), dir, env, words[0], words[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("$ %s\n%s", line, out)
		switch {
		case words[1] == "run" && !strings.HasPrefix(out, "alone with order 42, token "):
			t.Errorf("the program printed %q", out)
		case words[1] == "list" && !strings.Contains(out, module+" v0.99.0"):
			t.Errorf("the module has the version %q", out)
		}
	}
}

// addEntry adds an entry to what is not released yet.
func addEntry(t *testing.T, root string) {
	t.Helper()
	path := filepath.Join(root, "CHANGELOG.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "## [Unreleased]\n", "## [Unreleased]\n\n- An entry.\n", 1))
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// copyOfTheProject copies the files that git tracks, or would track, into a new repository.
func copyOfTheProject(t *testing.T) string {
	t.Helper()
	from, to := filepath.Join("..", ".."), t.TempDir()
	list, err := output(t.Context(), from, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(list) {
		name = filepath.FromSlash(strings.TrimSpace(name))
		text, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // it is deleted, and that is not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := output(t.Context(), to, nil, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	return to
}

// documentsOf reads the documents of a project, by path.
func documentsOf(t *testing.T, root string) map[string]string {
	t.Helper()
	paths, err := documents(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(text)
	}
	if len(found) < 20 {
		t.Fatalf("only %d documents found", len(found))
	}
	return found
}

// changes lists the lines that only one of two texts has, in the form of diff.
func changes(before, after string) string {
	var b strings.Builder
	only := func(sign string, of, other string) {
		for line := range strings.Lines(of) {
			if strings.TrimSpace(line) != "" && !strings.Contains("\n"+other, "\n"+line) {
				b.WriteString(sign + line)
			}
		}
	}
	only("-", before, after)
	only("+", after, before)
	return b.String()
}
