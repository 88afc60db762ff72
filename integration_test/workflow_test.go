package integration_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedWorkflow: the workflow runs each part of .ci/run on a machine of its own.
// Together they do what .ci/run does without arguments.
func TestDocumentedWorkflow(t *testing.T) {
	parts := func(path, pattern string) []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no %s", path, pattern)
		}
		return strings.FieldsFunc(string(m[1]), func(r rune) bool { return r == ' ' || r == ',' })
	}
	script := parts("../.ci/run", `(?m)^parts=\((.*)\)$`)
	workflow := parts("../.github/workflows/ci.yml", `(?m)^ *part: \[(.*)\]$`)
	if len(script) == 0 || !slices.Equal(script, workflow) {
		t.Errorf("the parts of .ci/run are %q, and those of the workflow %q", script, workflow)
	}
	text, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range script {
		if !regexp.MustCompile(`wants `+part+`\b`).Match(text) && !regexp.MustCompile(`for part in [a-z ]*\b`+part+`\b`).Match(text) {
			t.Errorf("no step of .ci/run is for the part %s", part)
		}
	}
	// Each target of test-race is a part, so the parts cover what test-race does.
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	yml, err := os.ReadFile("../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	// The Makefile runs the other tests with the Go that the race detector needs.
	if !bytes.Contains(yml, []byte("- {part: test, go: oldstable}\n")) {
		t.Error("the workflow does not run the part test with the release of Go before the newest")
	}
	for _, target := range parts("../.github/workflows/ci.yml", `(?m)^ *target: \[(.*)\]$`) {
		if !bytes.Contains(makefile, []byte("\n"+target+":")) {
			t.Errorf("the workflow runs make %s, and the Makefile has no such target", target)
		}
	}
	for _, part := range []string{"core", "adapters", "servers"} {
		if !slices.Contains(script, part) || !bytes.Contains(makefile, []byte("\ntest-"+part+":")) {
			t.Errorf("there is no part %s, or no target test-%[1]s", part)
		}
	}
}

// TestDocumentedActionsArePinned: a tag of an action can be moved to another commit, a hash cannot. The
// comment has the version, which dependabot keeps up to date together with the hash.
func TestDocumentedActionsArePinned(t *testing.T) {
	workflows, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("%d workflows: %v", len(workflows), err)
	}
	pinned := regexp.MustCompile(`uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses, hashes := 0, make(map[string]string) // by action
	for _, path := range workflows {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			if !strings.Contains(line, "uses:") {
				continue
			}
			uses++
			if !pinned.MatchString(line) {
				t.Errorf("%s: %q has no hash with its version", path, strings.TrimSpace(line))
				continue
			}
			action, at, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), "@")
			if before := hashes[action]; before != "" && before != at {
				t.Errorf("%s: %s is there as %s and as %s", path, action, before, at)
			}
			hashes[action] = at
		}
	}
	if uses < 4 {
		t.Errorf("only %d uses of actions found", uses)
	}
}

// TestDocumentedModulesAreUpdated: dependabot looks at each module of the repository.
func TestDocumentedModulesAreUpdated(t *testing.T) {
	text, err := os.ReadFile("../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var listed, there []string
	for _, m := range regexp.MustCompile(`(?m)^ *- (/.*)$`).FindAllSubmatch(text, -1) {
		listed = append(listed, string(m[1]))
	}
	for _, path := range projectFiles(t) {
		if dir, file := filepath.Split(path); file == "go.mod" {
			there = append(there, "/"+strings.TrimSuffix(dir, "/"))
		}
	}
	slices.Sort(there)
	if len(there) < 10 || !slices.Equal(listed, there) {
		t.Errorf(".github/dependabot.yml has the folders\n%q, and modules are in\n%q", listed, there)
	}
}

// TestDocumentedOldLibraries: SECURITY.md names the versions of the libraries without recent releases that
// the modules require. If an update changes one, what the document says of it must be read again.
func TestDocumentedOldLibraries(t *testing.T) {
	security, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\| (v[0-9.]+), ").FindAllSubmatch(security, -1)
	if len(named) != 2 {
		t.Fatalf("SECURITY.md names %d libraries, want go-zookeeper and gokrb5", len(named))
	}
	for i, path := range []string{"../go.mod", "../contrib/kerberos/go.mod"} {
		gomod, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := string(named[i][1]) + " " + string(named[i][2])
		if !regexp.MustCompile(`(?m)^(require |\t)` + regexp.QuoteMeta(want) + `$`).Match(gomod) {
			t.Errorf("%s does not require %s, which SECURITY.md names", path, want)
		}
	}
}
