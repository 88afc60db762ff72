package integration_test

import (
	"bytes"
	"os"
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
	// Each target of test-race is a part, so the parts cover what .ci/run does without arguments.
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
	for _, part := range []string{"core", "adapters", "servers"} {
		if !slices.Contains(script, part) || !bytes.Contains(makefile, []byte("\ntest-"+part+":")) {
			t.Errorf("there is no part %s, or no target test-%[1]s", part)
		}
	}
}
