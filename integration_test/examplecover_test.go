package integration_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// shownTypes are the types whose methods users call, by package. An example has to use each
// of these methods, too.
var shownTypes = map[string][]string{
	"zklock":          {"Client", "Lock", "Mutex", "RWMutex", "Token"},
	"zklock/election": {"Election", "Term"},
	"zklock/fence":    {"Guard"},
}

// notShown are functions that need no example, with the reason.
var notShown = map[string]string{
	"zklock.Register":                    "drivers call it; ExampleDrivers shows its effect",
	"zklock.WithDriverOption":            "packages of drivers call it; ExampleWithSASL of zkdriver shows its effect",
	"zklock/zkdriver.RegisterSASL":       "packages of mechanisms call it; the example of contrib/kerberos shows its effect",
	"zklock.Token.MarshalText":           "encoding packages call it",
	"zklock.Token.UnmarshalText":         "encoding packages call it",
	"zklock/drivertest.Run":              "it needs a *testing.T; the package documentation and each driver's conformance test show it",
	"zklock/drivertest.RunSynctest":      "like Run",
	"zklock/fence.Pgx":                   "it needs a database; the module integration_test/databases uses it on PostgreSQL",
	"contrib/locktest.Run":               "it needs a worker; README.md of the module shows the command that calls it",
	"contrib/locktest/worker.Main":       "it is a program's function main; the programs in contrib/locktest/workers show it",
	"contrib/locktest/servers.Run":       "it needs the programs of servers; its tests show it",
	"contrib/locktest/fault.NewClock":    "it needs a C compiler; its test shows it",
	"contrib/locktest/fault.NewPeerLink": "it is NewLink for servers, which has an example",
	"zklock/fence.InTx":                  "it needs a database; examples/batch and the module integration_test/databases use it on real ones",
}

// TestExamplesAreThereForEveryEntryPoint fails for every exported function, and every method
// of shownTypes, that no example with an output uses. Examples without an output are only
// compiled, not run.
func TestExamplesAreThereForEveryEntryPoint(t *testing.T) {
	entries := 0
	for _, f := range folders(t) {
		if strings.HasPrefix(f.pkg, "integration_test") || strings.HasSuffix(f.pkg, "pb") {
			continue
		}
		used := make(map[string]bool)
		for _, name := range f.tests {
			for _, x := range exampled(t, filepath.Join(f.dir, name)) {
				used[x] = true
			}
		}
		for _, entry := range entryPoints(t, f) {
			entries++
			name := entry[strings.LastIndexByte(entry, '.')+1:]
			why, exempt := notShown[f.pkg+"."+entry]
			switch {
			case exempt && used[name]:
				t.Errorf("%s.%s is in an example: remove its exception %q", f.pkg, entry, why)
			case !exempt && !used[name]:
				t.Errorf("no example with an output uses %s.%s", f.pkg, entry)
			}
		}
	}
	if entries < 120 {
		t.Errorf("only %d functions and methods found", entries)
	}
}

// exampled returns the names that the examples of a file use in the form x.Name.
func exampled(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range doc.Examples(file) {
		if example.Output == "" {
			continue
		}
		ast.Inspect(example.Code, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok {
				names = append(names, x.Sel.Name)
			}
			return true
		})
	}
	return names
}

// entryPoints returns the exported functions of a package, and the exported methods of its
// shownTypes.
func entryPoints(t *testing.T, f folder) (names []string) {
	t.Helper()
	for _, name := range f.files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(f.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || !d.Name.IsExported() {
				continue
			}
			if d.Recv == nil {
				names = append(names, d.Name.Name)
				continue
			}
			for _, shown := range shownTypes[f.pkg] {
				if receiver(d) == shown {
					names = append(names, shown+"."+d.Name.Name)
				}
			}
		}
	}
	return names
}
