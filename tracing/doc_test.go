package tracing_test

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

// documented returns the tables of the package documentation: for each name of the first
// column, the other names in its row, such as its attributes.
var documented = sync.OnceValue(func() map[string][]string {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		panic(err)
	}
	names := regexp.MustCompile(`\b(zklock|error|server)\.[a-z_.]*[a-z]`)
	rows := make(map[string][]string)
	row := ""
	for line := range strings.Lines(string(text)) {
		line, indented := strings.CutPrefix(line, "//\t")
		if !indented || !names.MatchString(line) && row == "" {
			row = ""
			continue
		}
		found := names.FindAllString(line, -1)
		if names.FindStringIndex(line) != nil && strings.HasPrefix(line, found[0]) {
			row, found = found[0], found[1:]
		}
		if row != "" { // an event and a metric with the same name share a row
			rows[row] = append(rows[row], found...)
		}
	}
	return rows
})

// isDocumented checks that a name is in the tables with all attributes seen.
func isDocumented(t *testing.T, name string, kvs []attribute.KeyValue) {
	t.Helper()
	row, ok := documented()[name]
	if !ok {
		t.Errorf("%s is not documented", name)
	}
	for _, kv := range kvs {
		if !slices.Contains(row, string(kv.Key)) {
			t.Errorf("%s has the attribute %s, which is missing in its row of the documentation", name, kv.Key)
		}
	}
}

// names.go declares the names that the package documentation lists, and no others.
func TestTablesHaveTheNamesThatTheCodeHas(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checker := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := checker.Check("tracing", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]bool)
	for _, name := range pkg.Scope().Names() {
		c := pkg.Scope().Lookup(name).(*types.Const)
		for _, prefix := range []string{"Span", "Event", "Metric", "Attr"} {
			if strings.HasPrefix(name, prefix) {
				declared[constant.StringVal(c.Val())] = true
			}
		}
	}
	if len(declared) < 30 {
		t.Fatalf("names.go declares only %d names, want at least 30", len(declared))
	}
	for name := range declared {
		if _, ok := documented()[name]; !ok {
			t.Errorf("%s is declared and not documented", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented())) {
		if !declared[name] {
			t.Errorf("%s is documented and not declared", name)
		}
	}
}
