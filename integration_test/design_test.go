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
	members map[string]bool // the methods and fields of the core's types: type.method, type.field
	names   map[string]bool // the core's top-level names; those of packages below it with the package: driver.Session
	tests   map[string]bool // the functions in all test files
}

// declarations reads the core's files and all test files.
func declarations(t *testing.T) declared {
	t.Helper()
	d := declared{members: make(map[string]bool), names: make(map[string]bool), tests: make(map[string]bool)}
	for _, pattern := range []string{"../zklock/*.go", "../zklock/*/*.go", "../zklock/internal/*/*.go", "*_test.go", "*/*_test.go", "../internal/testkit/*/*_test.go"} {
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
			d.add(file, prefix, strings.HasSuffix(path, "_test.go"))
		}
	}
	return d
}

func (d *declared) add(file *ast.File, prefix string, test bool) {
	for _, decl := range file.Decls {
		switch x := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case test:
				d.tests[x.Name.Name] = true
			case x.Recv != nil:
				d.members[prefix+receiver(x)+"."+x.Name.Name] = true
			default:
				d.names[prefix+x.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range x.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					d.names[prefix+s.Name.Name] = true
					for _, m := range members(s.Type) {
						for _, name := range m.Names {
							d.members[prefix+s.Name.Name+"."+name.Name] = true
						}
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						d.names[prefix+name.Name] = true
					}
				}
			}
		}
	}
}

// TestDesignNamesWhatExists looks up every file, function, method, field and
// test that zklock/DESIGN.md names.
func TestDesignNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../zklock/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	d := declarations(t)
	outside := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
	var files, functions, tests int
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(outside, -1) {
		name := m[1]
		switch kind := regexp.MustCompile(`^(?:(.*\.go)|(Test\w+)|(\w+(?:\.\w+){1,2})|([a-z]+[A-Z]\w*))$`).FindStringSubmatch(name); {
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
		case kind[3] != "":
			functions++
			if !d.members[name] && !d.names[name] {
				t.Errorf("the document names %s, which the core does not declare", name)
			}
		default:
			functions++
			if !d.names[name] && name != "syncLimit" { // a setting of the servers
				t.Errorf("the document names %s, which the core does not declare", name)
			}
		}
	}
	if files < 30 || functions < 50 || tests < 30 {
		t.Errorf("the document names only %d files, %d functions and %d tests: the test does not find the names any more", files, functions, tests)
	}
}
