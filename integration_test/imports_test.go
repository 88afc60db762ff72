package integration_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// module is the path of the module under test.
const module = "github.com/zklock/go-zklock"

// imports says what a package may be built from, beside the standard library.
type imports struct {
	// ours are packages of this module, without the module's path.
	ours []string

	// foreign are prefixes of packages of other modules that it may import.
	// What those import themselves is theirs to say.
	foreign []string
}

// importRules has a rule for every package that an application can import. The
// core and the drivers stay free of dependencies, an adapter knows no driver
// and no other adapter, and whoever uses one adapter never compiles the
// dependencies of another. What adapters share, such as the format of names, is
// in a package that imports the core and nothing else.
var importRules = map[string]imports{
	"zklock/driver":           {},
	"zklock/internal/errs":    {},
	"zklock/internal/hook":    {},
	"zklock/internal/lease":   {},
	"zklock/internal/queue":   {ours: []string{"zklock/driver", "zklock/internal/errs"}},
	"zklock/internal/session": {ours: []string{"zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease"}},
	"zklock/internal/place":   {ours: []string{"zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease", "zklock/internal/queue", "zklock/internal/session"}},
	"zklock":                  {ours: []string{"zklock/driver", "zklock/internal/"}},
	"zklock/fence":            {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}},
	"zklock/memdriver":        {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}},
	"zklock/faultdriver":      {ours: []string{"zklock/driver"}},
	"zklock/drivertest":       {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}},
	"zklock/zkdriver":         {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}, foreign: []string{"github.com/go-zookeeper/zk"}},
	"middleware":              {ours: []string{"zklock", "zklock/internal/", "zklock/driver", "zklock/fence", "internal/naming"}},
	"middleware/ginlock":      {ours: []string{"zklock", "zklock/internal/", "zklock/driver", "zklock/fence", "middleware", "internal/naming"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"interceptors":            {ours: []string{"zklock", "zklock/internal/", "zklock/driver", "zklock/fence", "internal/naming", "interceptors/lockpb"}, foreign: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}},
	"tracing":                 {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}, foreign: []string{"go.opentelemetry.io/otel"}},
	"internal/naming":         {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}},
	"integration_test/bench":  {ours: []string{"zklock", "zklock/internal/", "zklock/driver", "zklock/zkdriver", "integration_test/"}, foreign: []string{"github.com/go-zookeeper/zk"}},
	"integration_test/crowd":  {ours: []string{"zklock", "zklock/internal/", "zklock/driver"}},
	"integration_test/":       {ours: []string{"integration_test/"}},
	"interceptors/":           {ours: []string{"interceptors/"}, foreign: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}},
	"examples/":               {ours: []string{""}, foreign: []string{""}},
}

// rule finds the rule for a package: its own, or that of a folder above it.
func rule(pkg string) (imports, bool) {
	if r, ok := importRules[pkg]; ok {
		return r, true
	}
	for folder, r := range importRules {
		if strings.HasSuffix(folder, "/") && strings.HasPrefix(pkg, folder) {
			return r, true
		}
	}
	return imports{}, false
}

// violations are the packages p is built from against the rules.
func violations(p goPackage, r imports) []string {
	var found []string
	for _, dep := range p.Deps {
		if name, ok := strings.CutPrefix(dep, module+"/"); ok && !matches(name, r.ours) {
			found = append(found, dep)
		}
		// A dependency that others brought in is as much compiled as one that
		// was imported: without any allowed, there may be none at all.
		if len(r.foreign) == 0 && foreign(dep) {
			found = append(found, dep)
		}
	}
	for _, dep := range p.Imports {
		if len(r.foreign) > 0 && foreign(dep) && !matches(dep, r.foreign) {
			found = append(found, dep)
		}
	}
	return found
}

// matches reports whether name is one of those, or below one of those.
func matches(name string, those []string) bool {
	for _, x := range those {
		if x == "" || name == x || strings.HasSuffix(x, "/") && strings.HasPrefix(name, x) ||
			strings.Contains(strings.SplitN(x, "/", 2)[0], ".") && strings.HasPrefix(name, x+"/") {
			return true
		}
	}
	return false
}

// foreign reports whether a package belongs to another module: the first part
// of its path has a dot. (The standard library vendors some under vendor/.)
func foreign(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".") && pkg != module && !strings.HasPrefix(pkg, module+"/")
}

// goPackage is what go list tells about a package, tests aside.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportsFollowTheRules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	seen := 0
	for list := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p goPackage
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if name == "integration_test" {
			continue // tests only
		}
		r, ok := rule(name)
		if !ok {
			t.Errorf("package %s has no rule in importRules", name)
		}
		if bad := violations(p, r); len(bad) > 0 {
			t.Errorf("package %s must not be built from\n\t%s", name, strings.Join(bad, "\n\t"))
		}
	}
	if seen < 5 {
		t.Errorf("go list told of %d packages only", seen)
	}
}

func TestImportsRulesCatchViolations(t *testing.T) {
	for _, c := range []struct {
		pkg           string
		imports, deps []string
		want          int
	}{
		{pkg: "zklock", deps: []string{"time", "vendor/golang.org/x/net/dns/dnsmessage", module + "/zklock/driver"}},
		{pkg: "zklock", deps: []string{"golang.org/x/sys/unix"}, want: 1},
		{pkg: "zklock", deps: []string{module + "/zklock/memdriver"}, want: 1},
		{pkg: "zklock/zkdriver", imports: []string{"github.com/go-zookeeper/zk"}, deps: []string{"github.com/go-zookeeper/zk", module + "/zklock"}},
		{pkg: "zklock/zkdriver", imports: []string{"github.com/go-zookeeper/zkfake"}, deps: []string{"github.com/go-zookeeper/zkfake"}, want: 1},
		{pkg: "middleware", deps: []string{"github.com/gin-gonic/gin"}, want: 1},
		{pkg: "middleware", deps: []string{module + "/zklock/zkdriver"}, want: 1},
		{pkg: "middleware/ginlock", imports: []string{"github.com/gin-gonic/gin"}, deps: []string{"github.com/gin-gonic/gin", "go.mongodb.org/mongo-driver/v2/bson", module + "/middleware"}},
		{pkg: "interceptors", imports: []string{"google.golang.org/grpc/codes"}, deps: []string{"google.golang.org/grpc/codes", "golang.org/x/net/http2"}},
		{pkg: "interceptors", imports: []string{"go.opentelemetry.io/otel"}, deps: []string{"go.opentelemetry.io/otel"}, want: 1},
		{pkg: "tracing", imports: []string{"go.opentelemetry.io/otel/trace"}, deps: []string{module + "/middleware"}, want: 1},
		{pkg: "examples/quickstart", imports: []string{"anything.example/x"}, deps: []string{module + "/zklock/memdriver"}},
	} {
		r, ok := rule(c.pkg)
		if !ok {
			t.Errorf("no rule for %s", c.pkg)
		}
		if got := violations(goPackage{Imports: c.imports, Deps: c.deps}, r); len(got) != c.want {
			t.Errorf("%s with imports %v, deps %v: violations %v, want %d", c.pkg, c.imports, c.deps, got, c.want)
		}
	}
	if _, ok := rule("unheard-of"); ok {
		t.Error("a package nobody thought of has a rule")
	}
}
