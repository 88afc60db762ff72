package zklock_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// declared returns the exported methods that this package's files declare, by type.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	methods := make(map[string][]string)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			name := of.(*ast.Ident).Name
			methods[name] = append(methods[name], f.Name.Name)
		}
	}
	return methods
}

// The exported types have the methods that are declared for them, and no others. What
// they embed may have exported methods and fields, for packages below this one: these do
// not show.
func TestNothingElseIsExported(t *testing.T) {
	methods := declared(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*zklock.Client](), reflect.TypeFor[*zklock.Lock](), reflect.TypeFor[*zklock.Mutex](),
		reflect.TypeFor[*zklock.Reader](), reflect.TypeFor[*zklock.RWMutex](), reflect.TypeFor[*zklock.Semaphore](), reflect.TypeFor[*zklock.Group](),
	} {
		var have []string
		for i := range typ.NumMethod() {
			have = append(have, typ.Method(i).Name)
		}
		want := slices.Sorted(slices.Values(methods[typ.Elem().Name()]))
		if !slices.Equal(have, want) {
			t.Errorf("%v has the methods %v, but %v are declared for it", typ, have, want)
		}
		for _, f := range reflect.VisibleFields(typ.Elem()) {
			if f.IsExported() {
				t.Errorf("%v has the exported field %s, want none", typ, f.Name)
			}
		}
	}
}
