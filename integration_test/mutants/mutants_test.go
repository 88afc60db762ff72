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
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's root, relative to this package's folder.
const root = "../.."

const module = "github.com/zklock/go-zklock"

// Each mutant has one place in the package that it breaks, and it compiles there. The
// position of a compiler's error is the mutant's name and the line in the function that it
// changes. Find and Put name no private function: gopls renames functions in Go only.
func TestMutantsApplyAndCompile(t *testing.T) {
	all := mutants(t)
	seen := make(map[string]bool)
	for _, m := range all {
		if seen[m.pkg] {
			continue
		}
		seen[m.pkg] = true
		s, err := readSource(root, m.pkg)
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.graft(all)
		if err != nil {
			t.Error(err)
			continue
		}
		c := newChecker(t, s)
		uses, _ := c.check(t, nil)
		grafted, trees := c.check(t, files)
		for _, m := range all {
			if m.pkg != s.pkg {
				continue
			}
			for _, ch := range m.changes {
				named := append(privateInFind(t, s, ch, uses), privateInPut(ch, alias(ch.in.name, m.number), grafted, trees)...)
				for _, name := range named {
					t.Errorf("mutant %s names the private function %s: write $%s, and With if another could stand there", m.name, name, name)
				}
			}
		}
	}
}

func mutants(t *testing.T) []numbered {
	t.Helper()
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d mutants were found", len(all))
	}
	return all
}

// privateInFind returns the private functions that a change's Find names.
func privateInFind(t *testing.T, s *source, c change, uses map[*ast.Ident]types.Object) (names []string) {
	at, err := s.locate(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range at.literal {
		if isPrivate(uses[id]) && !c.with.has(id.Name) {
			names = append(names, id.Name)
		}
	}
	return names
}

// privateInPut returns the private functions that a change's Put names: identifiers of Put
// that are private functions in the changed copy, more often than in the original.
func privateInPut(c change, copied string, uses map[*ast.Ident]types.Object, trees []*ast.File) (names []string) {
	count := make(map[string]int)
	for _, tree := range trees {
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || nameOf(fn) != c.in && nameOf(fn) != (funcName{c.in.receiver, copied}) {
				continue
			}
			sign := 1
			if nameOf(fn) == c.in {
				sign = -1
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && isPrivate(uses[id]) {
					count[id.Name] += sign
				}
				return true
			})
		}
	}
	for _, name := range regexp.MustCompile(`\$*\b[\pL_]\w*`).FindAllString(c.put, -1) {
		if count[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// isPrivate reports whether an object is a function that only this module's packages can call.
func isPrivate(o types.Object) bool {
	f, ok := o.(*types.Func)
	if !ok || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module+"/") {
		return false
	}
	return !f.Exported() || strings.Contains(f.Pkg().Path(), "/internal/")
}

// has reports whether a function is one of those that wildcards stand for.
func (n names) has(function string) bool {
	return slices.Contains(slices.Collect(maps.Values(n)), function)
}

// checker type-checks one package with some of its files changed.
type checker struct {
	*source
	imports types.Importer
	path    string
}

func newChecker(t *testing.T, s *source) *checker {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "os", "strconv", "./"+s.pkg)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	c := &checker{source: s}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) { // the package itself is the last
		path, export, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path], c.path = export, path
	}
	c.imports = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check returns what each identifier in the package refers to, and the trees of its files.
func (c *checker) check(t *testing.T, changed map[string]string) (uses map[*ast.Ident]types.Object, trees []*ast.File) {
	t.Helper()
	for name, f := range c.files {
		if _, ok := changed[name]; !ok {
			trees = append(trees, f.tree)
		}
	}
	for name, text := range changed {
		f, err := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, f)
	}
	uses = make(map[*ast.Ident]types.Object)
	config := types.Config{Importer: c.imports, Error: func(err error) { t.Error(err) }}
	_, _ = config.Check(c.path, c.fset, trees, &types.Info{Uses: uses}) // config.Error reports each error
	return uses, trees
}

// The tests that are expected to find a mutant exist in the package that it names.
func TestExpectedTestsExist(t *testing.T) {
	declared := make(map[string]string)
	names := make(map[string]bool)
	for _, m := range mutants(t) {
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

// A pattern is compared with the syntax tree.
func TestPatternsMatch(t *testing.T) {
	const body = `if err := s.load(ctx); err != nil { // a comment
		return err
	}
	if a && b && c() { x = x + 1; y = list(1, 2, 3) }
	s.close(nil)
	for { x = x - 1 }`
	for _, c := range []struct{ find, put, want string }{
		{"s.close(nil)", "s.open()", "s.open()"},
		{"s.$end(nil)", "s.$end(nil); s.$end(err)", "s.close(nil); s.close(err)"},
		{"if err := s.$f(ctx); err != nil { return err }", "", ""},
		{"if err := s.$f(ctx); err != nil { $$body }", "s.$f(ctx)", "s.load(ctx)"},
		{"$rest && c()", "$rest", "(a && b)"},
		{"a && b", "a || b", "(a || b)"},
		{"list($$args)", "list(0, $$args)", "list(0, 1, 2, 3)"},
		{"if $when { x = x + 1; $$more }", "$$more", "y = list(1, 2, 3)"},
		{"x = x + 1", "", ""},
		{"$v = $v + 1", "$v++", "x++"},
		{"for { $$body }", "$$body", "x = x - 1"},
		{"x = x + 2", "", "0 times"},
		{"$f = $v", "", "3 times"},
		{"s.$f(nil)", "s.$g(nil)", "has $g"},
		{"if {", "", "in Find"},
	} {
		s := sourceOf(t, "func f() {\n"+body+"\n}\n")
		at, err := s.locate(change{in: funcName{name: "f"}, find: c.find, put: c.put})
		if err != nil {
			at.text = err.Error()
		}
		if at.text != c.want && (err == nil || !strings.Contains(at.text, c.want)) {
			t.Errorf("%s, %s: %q, want %q", c.find, c.put, at.text, c.want)
		}
	}
}

func sourceOf(t *testing.T, functions string) *source {
	t.Helper()
	text, fset := "package p\n\n"+functions, token.NewFileSet()
	tree, err := parser.ParseFile(fset, "f.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &source{pkg: "p", fset: fset, files: map[string]*sourceFile{"f.go": {text, tree}}}
}

// The checker finds the private functions that a mutant names in Find and in Put, because a rename
// of one would break the mutant. It does not report one that stands behind a wildcard ($).
func TestPrivateFunctionsAreSeen(t *testing.T) {
	s := sourceOf(t, "func f(a int) int { close := a; return get(close) + Set(close) }\nfunc get(a int) int { return a }\nfunc Set(a int) int { return a }\n")
	c := &checker{s, importer.ForCompiler(s.fset, "source", nil), module + "/p"}
	uses, _ := c.check(t, nil)
	for _, x := range []struct {
		find, put string
		with      names
		want      []string
	}{
		{"get(close)", "0", nil, []string{"get"}},
		{"$get(close)", "0", names{"get": "get"}, nil},
		{"Set(close)", "get(a)", nil, []string{"get"}},
		{"Set(close)", "$get(a)", names{"get": "get"}, nil},
		{"Set(close)", "close + Set(a)", nil, nil},
	} {
		ch := change{funcName{name: "f"}, x.find, x.put, x.with}
		files, err := s.graft([]numbered{{mutant{name: "m", pkg: "p", changes: []change{ch}}, 1}})
		if err != nil {
			t.Fatal(err)
		}
		grafted, trees := c.check(t, files)
		if got := append(privateInFind(t, s, ch, uses), privateInPut(ch, "fMutant1", grafted, trees)...); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// A list is read from source: the functions may be methods, generic, or another package's.
func TestListsAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mutants_test.go")
	text := "package p\n\nvar _ = []mutant.Mutant{{Name: \"a\" + \"b\", In: (*T[int]).f, Find: `x`, With: map[string]any{\"g\": q.G},\n" +
		"And: []mutant.Change{{In: h[int], Put: \"y\"}}, Tests: []string{\"TestT\"}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readList(file)
	want := []mutant{{name: "ab", tests: []string{"TestT"}, changes: []change{
		{in: funcName{"T", "f"}, find: "x", with: names{"g": "G"}}, {in: funcName{"", "h"}, put: "y"},
	}}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
}
