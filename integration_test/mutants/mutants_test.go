package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's root, relative to this package's folder.
const root = "../.."

// A mutant has to be adapted when the code that it breaks changes: each of its texts
// occurs once, and the result compiles. The position of an error is the mutant's name and
// the line in the function that it changes.
func TestMutantsApplyAndCompile(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range all() {
		pkg := m.pkg()
		if seen[pkg] {
			continue
		}
		seen[pkg] = true
		files, err := graft(root, pkg, all())
		if err != nil {
			t.Error(err)
			continue
		}
		newChecker(t, pkg).check(t, files)
	}
}

// checker type-checks one package with some of its files changed.
type checker struct {
	fset    *token.FileSet
	files   map[string]*ast.File
	imports types.Importer
	path    string
}

func newChecker(t *testing.T, pkg string) *checker {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "os", "strconv", "./"+pkg)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	c := &checker{fset: token.NewFileSet(), files: make(map[string]*ast.File)}
	exports := make(map[string]string)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var dir, files string
	for _, line := range lines { // the package itself is the last
		fields := strings.SplitN(line, "\t", 4)
		exports[fields[0]] = fields[1]
		c.path, dir, files = fields[0], fields[2], fields[3]
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for name := range strings.FieldsSeq(files) {
		if c.files[name], err = parser.ParseFile(c.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *checker) check(t *testing.T, changed map[string]string) {
	t.Helper()
	for name, text := range changed {
		f, err := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		c.files[name] = f
	}
	config := types.Config{Importer: c.imports, Error: func(err error) { t.Error(err) }}
	_, _ = config.Check(c.path, c.fset, slices.Collect(maps.Values(c.files)), nil) // config.Error reports each error
}

// The tests that are expected to find a mutant exist in the package that it names.
func TestExpectedTestsExist(t *testing.T) {
	declared := make(map[string]string)
	names := make(map[string]bool)
	for _, m := range all() {
		if names[m.name] {
			t.Errorf("two mutants are called %s", m.name)
		}
		names[m.name] = true
		if len(m.tests) == 0 || m.breaks == "" {
			t.Errorf("mutant %s has to state what it breaks, and which test finds it", m.name)
		}
		pkg := m.tester()
		if declared[pkg] == "" {
			declared[pkg] = testFiles(t, pkg)
		}
		for _, name := range m.tests {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(declared[pkg]) {
				t.Errorf("mutant %s: %s has no test %s", m.name, pkg, name)
			}
		}
	}
}

func testFiles(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", pkg, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// The test that caught a mutant is found in the test binary's output.
func TestBlamed(t *testing.T) {
	for want, out := range map[string]string{
		"TestA/deep":                     "=== RUN   TestA\n=== RUN   TestA/deep\n--- FAIL: TestA (0.0s)\n    --- FAIL: TestA/deep (0.0s)\nFAIL\n",
		"TestB (panics)":                 "=== RUN   TestA\n--- PASS: TestA (0.0s)\n=== RUN   TestB\npanic: deadlock: all goroutines in bubble are blocked\n",
		"TestMain (goroutines are left)": "=== RUN   TestA\n--- PASS: TestA (0.0s)\nPASS\nleaks: 1 goroutines are left:\n",
		"TestMain":                       "",
	} {
		if got := blamed([]byte(out)); got != want {
			t.Errorf("blamed %q, want %q, on\n%s", got, want, out)
		}
	}
}

// A mutant whose text occurs twice, or not at all, is stale.
func TestApplyIsStrict(t *testing.T) {
	m := mutant{name: "m", edits: []edit{{"a == b", "a != b"}}}
	if got, err := m.apply("if a == b {"); err != nil || got != "if a != b {" {
		t.Errorf("%q, %v", got, err)
	}
	for _, source := range []string{"", "a == b, a == b"} {
		if _, err := m.apply(source); err == nil || !strings.Contains(err.Error(), "stale") {
			t.Errorf("%q: %v", source, err)
		}
	}
}
