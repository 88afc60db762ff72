package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// declared has the names that the design document may use.
type declared struct {
	types  map[string]bool // of the core; those of packages below it with the package: driver.Session
	public map[string]bool // the exported functions, methods, fields and values of the packages that programs import
	tests  map[string]bool // the functions in all test files

	mutants map[string]bool // of the core
}

// declarations reads the core's files and all test files.
func declarations(t *testing.T) declared {
	t.Helper()
	d := declared{types: make(map[string]bool), public: make(map[string]bool), tests: make(map[string]bool), mutants: make(map[string]bool)}
	for _, pattern := range []string{"../zklock/*.go", "../zklock/*/*.go", "../zklock/internal/*/*.go", "*_test.go", "*/*_test.go", "../internal/testkit/*/*_test.go", "../internal/sessiondir/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			prefix := file.Name.Name + "."
			if prefix == "zklock." {
				prefix = ""
			}
			d.add(file, prefix, !strings.Contains(path, "/internal/"), strings.HasSuffix(path, "_test.go"))
		}
	}
	return d
}

func (d *declared) add(file *ast.File, prefix string, public, test bool) {
	if test {
		ast.Inspect(file, func(n ast.Node) bool {
			if pair, is := n.(*ast.KeyValueExpr); is {
				key, _ := pair.Key.(*ast.Ident)
				if value, is := pair.Value.(*ast.BasicLit); is && key != nil && key.Name == "Name" {
					d.mutants[strings.Trim(value.Value, `"`)] = true
				}
			}
			return true
		})
	}
	export := func(name *ast.Ident, owner string) {
		if public && name.IsExported() {
			d.public[prefix+owner+name.Name] = true
		}
	}
	for _, decl := range file.Decls {
		switch x := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case test:
				d.tests[x.Name.Name] = true
			case x.Recv != nil:
				export(x.Name, receiver(x)+".")
			default:
				export(x.Name, "")
			}
		case *ast.GenDecl:
			for _, spec := range x.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					d.types[prefix+s.Name.Name] = true
					for _, m := range members(s.Type) {
						for _, name := range m.Names {
							export(name, s.Name.Name+".")
						}
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						export(name, "")
					}
				}
			}
		}
	}
}

// TestDesignNamesWhatExists looks up every file, type, test and mutant that zklock/DESIGN.md names.
// Of functions the document may name those that programs call, and those that mutants change: the others
// are renamed as soon as a better name is found, and no sentence should stand in the way.
func TestDesignNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../zklock/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	d := declarations(t)
	outside := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
	outside = regexp.MustCompile("`[\\w.]+`:((?:\\s+`[a-z-]+`,?)+)").ReplaceAllString(outside, "$1") // functions with mutants: see TestDesignArgumentHasMutants
	var files, names, tests, mutants int
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(outside, -1) {
		name := m[1]
		switch kind := regexp.MustCompile(`^(?:(.*\.go)|(Test\w+)|(\w+(?:\.\w+){1,2}|[a-z]+[A-Z]\w*)|([a-z]+(?:-[a-z]+)+))$`).FindStringSubmatch(name); {
		case kind == nil: // a URL key, a znode, a package
		case kind[1] != "":
			files++
			if _, err := os.Stat(filepath.Join("..", "zklock", name)); err != nil {
				t.Error(err)
			}
		case kind[2] != "":
			tests++
			if !d.tests[name] {
				t.Errorf("the document names the test %s, which does not exist", name)
			}
		case kind[4] != "":
			mutants++
			if !d.mutants[name] {
				t.Errorf("the document names the mutant %s, which does not exist", name)
			}
		default:
			names++
			if !d.types[name] && !d.public[name] && name != "syncLimit" { // a setting of the servers
				t.Errorf("the document names %s, which is neither a type of the core nor a public function", name)
			}
		}
	}
	if files < 30 || names < 30 || tests < 30 || mutants < 10 {
		t.Errorf("the document names only %d files, %d types, %d tests and %d mutants: the test does not find the names any more", files, names, tests, mutants)
	}
}

// TestDesignArguesFromFewFiles keeps the argument for exclusion short enough to be read in one sitting:
// with all the files that it rests on.
func TestDesignArguesFromFewFiles(t *testing.T) {
	const title, mostFiles, mostLines = "## Why there is at most one holder\n", 12, 2500
	text, err := os.ReadFile("../zklock/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, argument, found := strings.Cut(string(text), title)
	argument, _, _ = strings.Cut(argument, "\n## ")
	files := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`\n]+\\.go)`").FindAllStringSubmatch(argument, -1) {
		files[m[1]] = true
	}
	lines := 0
	for name := range files {
		source, err := os.ReadFile(filepath.Join("..", "zklock", name))
		if err != nil {
			t.Error(err)
		}
		lines += strings.Count(string(source), "\n")
	}
	t.Logf("the argument rests on %d files with %d lines", len(files), lines)
	if !found || len(files) < 5 || len(files) > mostFiles || lines > mostLines {
		t.Errorf("the argument rests on %d files with %d lines, at most %d and %d are allowed", len(files), lines, mostFiles, mostLines)
	}
}

// Comments of the core name tests that fail without a branch. Each of these tests exists.
func TestDesignOfOddBranchesNamesTests(t *testing.T) {
	d, named := declarations(t), 0
	files, err := filepath.Glob("../zklock/internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			for _, test := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(group.Text(), -1) {
				if named++; !d.tests[test] {
					t.Errorf("%s names the test %s, which does not exist", path, test)
				}
			}
		}
	}
	if named < 40 {
		t.Errorf("comments of the core name only %d tests: this test does not find them any more", named)
	}
}
