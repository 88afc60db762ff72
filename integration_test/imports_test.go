package integration_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path of the module under test.
const module = "github.com/zklock/go-zklock"

// imports lists the packages that a package may depend on, in addition to the standard
// library.
type imports struct {
	// ours are the packages of this module, without the module's path.
	ours []string

	// foreign are prefixes of the packages of other modules that it may import. The
	// dependencies of these packages are not restricted.
	foreign []string
}

// zklockNeeds are the packages that package zklock depends on, and with it each package that
// imports it.
var zklockNeeds = []string{"zklock/driver", "zklock/internal/", "internal/backlog", "internal/sessiondir"}

// texts are the packages that make texts of errors. They import the standard library only, and each
// package may use them.
var texts = []string{"internal/nearest", "internal/oneline"}

// importRules has a rule for every package that an application can import. The core does not
// depend on other modules, nor do the drivers, except zkdriver on go-zookeeper. An adapter
// does not depend on a driver or on another adapter, except ginlock on middleware. So an
// application that uses one adapter never compiles the dependencies of another. Code that
// adapters share, such as the format of names, is in a package that imports the core only.
var importRules = map[string]imports{
	"internal/backlog":               {},
	"internal/nearest":               {},
	"internal/oneline":               {},
	"zklock/driver":                  {},
	"zklock/internal/control":        {},
	"zklock/internal/errs":           {},
	"zklock/internal/hook":           {},
	"zklock/internal/lease":          {},
	"zklock/internal/mutex":          {},
	"zklock/internal/queue":          {ours: []string{"zklock/driver", "zklock/internal/errs"}},
	"zklock/internal/session":        {ours: []string{"internal/backlog", "zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease", "zklock/internal/mutex"}},
	"zklock/internal/place":          {ours: []string{"internal/backlog", "zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease", "zklock/internal/mutex", "zklock/internal/queue", "zklock/internal/session"}},
	"zklock/internal/local":          {ours: []string{"internal/backlog", "zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease", "zklock/internal/mutex", "zklock/internal/place", "zklock/internal/queue", "zklock/internal/session"}},
	"zklock/internal/deadlock":       {ours: []string{"internal/backlog", "zklock/driver", "zklock/internal/errs", "zklock/internal/hook", "zklock/internal/lease", "zklock/internal/local", "zklock/internal/mutex", "zklock/internal/place", "zklock/internal/queue", "zklock/internal/session"}},
	"zklock/internal/model":          {ours: []string{"zklock/driver", "zklock/internal/errs", "zklock/internal/lease", "zklock/internal/queue"}},
	"zklock":                         {ours: zklockNeeds},
	"zklock/election":                {ours: []string{"zklock"}},
	"zklock/once":                    {ours: []string{"zklock"}},
	"zklock/fence":                   {ours: []string{"zklock"}},
	"zklock/memdriver":               {ours: []string{"zklock", "internal/memcontrol"}},
	"zklock/faultdriver":             {ours: []string{"zklock/driver", "internal/faultcontrol"}},
	"zklock/drivertest":              {ours: []string{"zklock"}},
	"zklock/zklocktest":              {ours: []string{"zklock", "zklock/memdriver", "internal/memcontrol"}},
	"zklock/inspect":                 {ours: []string{"zklock", "internal/operator"}},
	"zklock/zkdriver":                {ours: []string{"zklock", "internal/netcontrol"}, foreign: []string{"github.com/go-zookeeper/zk"}},
	"middleware":                     {ours: []string{"zklock", "zklock/fence", "internal/callers", "internal/naming", "internal/served"}},
	"middleware/ginlock":             {ours: []string{"zklock", "zklock/fence", "middleware", "internal/callers", "internal/naming", "internal/served"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"interceptors":                   {ours: []string{"zklock", "zklock/fence", "internal/callers", "internal/holding", "internal/naming", "internal/served", "internal/verdict", "interceptors/"}, foreign: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}},
	"tracing":                        {ours: []string{"zklock"}, foreign: []string{"go.opentelemetry.io/otel"}},
	"internal/sessiondir":            {ours: []string{"zklock/driver"}},
	"internal/callers":               {ours: []string{"zklock", "zklock/fence"}},
	"internal/operator":              {ours: []string{"zklock"}},
	"internal/holding":               {ours: []string{"zklock"}},
	"internal/faultcontrol":          {ours: []string{"zklock/driver"}},
	"internal/memcontrol":            {ours: []string{"zklock/driver"}},
	"internal/netcontrol":            {},
	"internal/naming":                {ours: []string{"zklock"}},
	"interceptors/protolock":         {ours: []string{"zklock", "internal/naming", "interceptors/lockpb"}, foreign: []string{"google.golang.org/protobuf"}},
	"internal/served":                {ours: []string{"zklock"}},
	"internal/verdict":               {ours: []string{"zklock", "zklock/fence", "internal/served"}},
	"contrib/connectlock":            {ours: []string{"zklock", "zklock/fence", "internal/callers", "internal/holding", "internal/naming", "internal/served", "internal/verdict", "interceptors/"}, foreign: []string{"connectrpc.com/connect", "google.golang.org/protobuf", "google.golang.org/genproto"}},
	"contrib/gocronlock":             {ours: []string{"zklock", "zklock/election", "zklock/once"}, foreign: []string{"github.com/go-co-op/gocron/v2"}},
	"contrib/kerberos":               {ours: []string{"zklock", "zklock/zkdriver", "internal/netcontrol"}, foreign: []string{"github.com/jcmturner/gokrb5/v8", "github.com/go-zookeeper/zk"}},
	"contrib/locktest":               {ours: []string{"contrib/locktest/"}, foreign: []string{"github.com/anishathalye/porcupine"}},
	"contrib/locktest/":              {ours: []string{"contrib/locktest", "contrib/locktest/"}, foreign: []string{"github.com/anishathalye/porcupine"}},
	"contrib/migratelock":            {ours: []string{"zklock"}, foreign: []string{"github.com/golang-migrate/migrate/v4"}},
	"contrib/zklockvet":              {foreign: []string{"golang.org/x/tools"}},
	"contrib/zklockvet/":             {ours: []string{"contrib/zklockvet"}, foreign: []string{"golang.org/x/tools", "github.com/golangci/plugin-module-register"}},
	"internal/testkit/":              {ours: []string{"zklock", "internal/testkit/"}},
	"internal/testkit/corekit":       {ours: []string{"zklock", "zklock/memdriver", "zklock/faultdriver", "internal/memcontrol", "internal/faultcontrol", "internal/testkit/census"}},
	"internal/testkit/world":         {ours: []string{"zklock", "zklock/memdriver", "zklock/faultdriver", "internal/memcontrol", "internal/faultcontrol", "internal/testkit/"}},
	"internal/testkit/wire":          {ours: []string{"zklock", "zklock/memdriver", "zklock/zkdriver", "internal/memcontrol", "internal/netcontrol"}, foreign: []string{"github.com/go-zookeeper/zk"}},
	"integration_test/bench":         {ours: []string{"zklock", "zklock/memdriver", "zklock/zkdriver", "internal/netcontrol", "internal/memcontrol", "integration_test/", "internal/testkit/", "contrib/locktest/"}, foreign: []string{"github.com/go-zookeeper/zk", "github.com/anishathalye/porcupine"}},
	"integration_test/silent":        {ours: []string{"zklock", "zklock/election", "zklock/zkdriver", "internal/netcontrol", "internal/testkit/"}, foreign: []string{"github.com/go-zookeeper/zk"}},
	"integration_test/layers/walker": {ours: []string{"zklock", "internal/memcontrol", "zklock/memdriver", "integration_test/"}},
	"contrib/contention":             {ours: []string{"zklock"}, foreign: []string{"github.com/google/pprof"}},
	"integration_test/release":       {foreign: []string{"golang.org/x/mod"}},
	"integration_test/":              {ours: []string{"integration_test/", "internal/testkit/"}},
	"interceptors/":                  {ours: []string{"interceptors/"}, foreign: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}},
	"examples/":                      {ours: []string{""}, foreign: []string{""}},

	"zklock/internal/simulation": {}, // it has tests only
	"cmd/zklock":                 {ours: []string{"cmd/zklock/internal/", "contrib/locktest/txnlog", "internal/operator", "internal/sessiondir", "zklock", "zklock/election", "zklock/inspect", "zklock/once", "zklock/zkdriver", "internal/netcontrol"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/zklock/zklock-kerberos": {ours: []string{""}, foreign: []string{""}},
	"cmd/zklock/internal/early":  {ours: []string{"cmd/zklock/internal/run", "cmd/zklock/internal/tty"}},
	"cmd/zklock/internal/run":    {ours: []string{"cmd/zklock/internal/tty"}},
	"cmd/zklock/internal/doctor": {ours: []string{"zklock"}},
	"cmd/zklock/internal/tty":    {},
	"cmd/zklock/internal/screen": {ours: []string{"cmd/zklock/internal/tty"}},
	"cmd/zklock/internal/cli":    {ours: []string{"cmd/zklock/internal/", "contrib/locktest/txnlog", "internal/operator", "internal/sessiondir", "zklock", "zklock/election", "zklock/inspect", "zklock/once", "zklock/zkdriver", "internal/netcontrol"}, foreign: []string{"github.com/spf13/cobra"}},
}

// rule finds the rule for a package: the package's rule, or that of a folder above it.
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

// violations returns the packages that p depends on against the rules.
func violations(p goPackage, r imports) []string {
	if slices.Contains(r.ours, "zklock") {
		r.ours = slices.Concat(r.ours, zklockNeeds)
	}
	r.ours = slices.Concat(r.ours, texts)
	var found []string
	for _, dep := range p.Deps {
		if name, ok := strings.CutPrefix(dep, module+"/"); ok && !matches(name, r.ours) {
			found = append(found, dep)
		}
		// An indirect dependency is compiled like a direct one. So a package without
		// allowed foreign packages must not depend on any, even indirectly.
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

// matches reports whether package name is in those, or is below one of them. A pattern with
// a slash at its end, or in another module, also matches the packages below it; "" matches
// all packages.
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

// goPackage is go list's description of a package, without its tests.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportsFollowTheRules(t *testing.T) {
	seen := 0
	for _, dir := range append(moduleFolders(t), "../examples", ".") {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = dir
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v\n%s", dir, err, stderr.String())
		}
		for list := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
			var p goPackage
			if err := list.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(p.ImportPath, module+"/")
			if name == "integration_test" {
				continue // it has only tests
			}
			r, ok := rule(name)
			if !ok {
				t.Errorf("package %s has no rule in importRules", name)
			}
			if bad := violations(p, r); len(bad) > 0 {
				t.Errorf("package %s must not depend on\n\t%s", name, strings.Join(bad, "\n\t"))
			}
		}
	}
	if seen < 5 {
		t.Errorf("go list returned only %d packages", seen)
	}
}

// moduleFolders lists the folders of the modules of a release: the root, the command, those of the
// adapters, and those below contrib.
func moduleFolders(t *testing.T) []string {
	t.Helper()
	plugs, err := filepath.Glob("../contrib/*/go.mod")
	if err != nil || len(plugs) < 3 {
		t.Fatalf("%d modules below contrib: %v", len(plugs), err)
	}
	dirs := []string{"..", "../cmd/zklock", "../interceptors", "../middleware/ginlock", "../tracing"}
	for _, p := range plugs {
		dirs = append(dirs, filepath.Dir(p))
	}
	return dirs
}

// TestImportsRequireLittle: a program that uses the core or the drivers gets go-zookeeper only, and
// this does not raise the version of a module that the program has. The command is a module of its
// own. Neither go.mod file has a replace line: go install with a version refuses such a module.
func TestImportsRequireLittle(t *testing.T) {
	for _, m := range []struct {
		dir              string
		direct, indirect []string
	}{
		{"..", []string{"github.com/go-zookeeper/zk"}, nil},
		{"../cmd/zklock", []string{"github.com/spf13/cobra", module, module + "/contrib/locktest"},
			[]string{"github.com/go-zookeeper/zk", "github.com/inconshreveable/mousetrap", "github.com/spf13/pflag"}},
	} {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
		cmd.Dir = m.dir
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("go mod edit in %s: %v", m.dir, err)
			continue
		}
		var gomod struct {
			Go      string
			Module  struct{ Path string }
			Require []struct {
				Path     string
				Indirect bool
			}
			Replace []any
		}
		if err := json.Unmarshal(out, &gomod); err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(module+strings.TrimPrefix(m.dir, ".."), "/"); gomod.Module.Path != want {
			t.Errorf("%s belongs to the module %s, want %s", m.dir, gomod.Module.Path, want)
		}
		var direct, indirect []string
		for _, r := range gomod.Require {
			if r.Indirect {
				indirect = append(indirect, r.Path)
			} else {
				direct = append(direct, r.Path)
			}
		}
		if !slices.Equal(direct, m.direct) {
			t.Errorf("go.mod in %s requires %q, want %q", m.dir, direct, m.direct)
		}
		if !slices.Equal(indirect, m.indirect) {
			t.Errorf("go.mod in %s requires indirectly %q, want %q", m.dir, indirect, m.indirect)
		}
		if want := "1.25.0"; gomod.Go != want {
			t.Errorf("go.mod in %s requires Go %s, want %s, the oldest that has what the library calls", m.dir, gomod.Go, want)
		}
		if len(gomod.Replace) > 0 {
			t.Errorf("go.mod in %s has %d replace directives", m.dir, len(gomod.Replace))
		}
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
		t.Error("an unknown package has a rule")
	}
}
