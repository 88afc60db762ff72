package integration_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/fence"
)

// exportedErrors are the error variables of the packages that docs/guarantees.md draws.
var exportedErrors = map[string]error{
	"zklock.ErrNotAcquired": zklock.ErrNotAcquired, "zklock.ErrTooManyWaiters": zklock.ErrTooManyWaiters,
	"zklock.ErrUnavailable": zklock.ErrUnavailable, "zklock.ErrOutage": zklock.ErrOutage, "zklock.ErrBusy": zklock.ErrBusy, "zklock.ErrBadEnsemble": zklock.ErrBadEnsemble,
	"zklock.ErrLost": zklock.ErrLost, "zklock.ErrLeaseOver": zklock.ErrLeaseOver, "zklock.ErrSessionExpired": zklock.ErrSessionExpired, "zklock.ErrNodeDeleted": zklock.ErrNodeDeleted,
	"zklock.ErrReleasePending": zklock.ErrReleasePending, "zklock.ErrReleased": zklock.ErrReleased, "zklock.ErrRevoked": zklock.ErrRevoked,
	"zklock.ErrMaxHold": zklock.ErrMaxHold, "zklock.ErrClosed": zklock.ErrClosed, "zklock.ErrInvalidName": zklock.ErrInvalidName,
	"zklock.ErrConflict": zklock.ErrConflict, "zklock.ErrMisuse": zklock.ErrMisuse, "zklock.ErrDeadlock": zklock.ErrDeadlock,
	"zklock.ErrNoAuth": zklock.ErrNoAuth, "zklock.ErrUnknownOutcome": zklock.ErrUnknownOutcome,
	"election.ErrNoLeader": election.ErrNoLeader, "election.ErrStop": election.ErrStop,
	"fence.ErrStale": fence.ErrStale, "fence.ErrUnfenced": fence.ErrUnfenced,
	"driver.ErrConnLoss": driver.ErrConnLoss, "driver.ErrNotSent": driver.ErrNotSent, "driver.ErrThrottled": driver.ErrThrottled,
	"driver.ErrSessionExpired": driver.ErrSessionExpired, "driver.ErrClosed": driver.ErrClosed, "driver.ErrLocalSession": driver.ErrLocalSession,
	"driver.ErrTLS": driver.ErrTLS, "driver.ErrProtocol": driver.ErrProtocol, "driver.ErrAuthFailed": driver.ErrAuthFailed,
	"driver.ErrNoNode": driver.ErrNoNode, "driver.ErrNodeExists": driver.ErrNodeExists, "driver.ErrNotEmpty": driver.ErrNotEmpty,
	"driver.ErrBadVersion": driver.ErrBadVersion, "driver.ErrNoChildrenForEphemerals": driver.ErrNoChildrenForEphemerals,
	"driver.ErrNoAuth": driver.ErrNoAuth, "driver.ErrInvalidACL": driver.ErrInvalidACL, "driver.ErrBadArguments": driver.ErrBadArguments,
	"driver.ErrUnimplemented": driver.ErrUnimplemented, "driver.ErrQuotaExceeded": driver.ErrQuotaExceeded,
	"driver.ErrTooLarge": driver.ErrTooLarge, "driver.ErrReplyTooLarge": driver.ErrReplyTooLarge, "driver.ErrRolledBack": driver.ErrRolledBack,
}

// declaredErrors returns the exported error variables of a package.
func declaredErrors(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if strings.HasPrefix(name.Name, "Err") {
							names = append(names, f.Name.Name+"."+name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// drawn returns the parent of each error in the drawing of docs/guarantees.md; "" for none.
func drawn(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, ok := strings.Cut(string(text), "\n## Errors\n")
	_, text2, ok2 := strings.Cut(text2, "\n```\n")
	drawing, _, ok3 := strings.Cut(text2, "\n```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("docs/guarantees.md has no drawing in its section Errors")
	}
	parents := make(map[string]string)
	line := regexp.MustCompile(`^(│   |    )?[├└]── ((?:Err\w+(?:, )?)+)`)
	var pkg, above string
	for l := range strings.Lines(drawing) {
		m := line.FindStringSubmatch(l)
		if m == nil {
			pkg = strings.TrimSpace(l)
			continue
		}
		for _, name := range strings.Split(m[2], ", ") {
			name = pkg + "." + name
			if _, twice := parents[name]; twice {
				t.Errorf("the drawing has %s twice", name)
			}
			if parents[name] = ""; m[1] != "" {
				parents[name] = above
			} else {
				above = name
			}
		}
	}
	return parents
}

// TestDocumentedErrorsFormATree: docs/guarantees.md draws every exported error, and an error
// matches itself and what is above it, and no sibling.
func TestDocumentedErrorsFormATree(t *testing.T) {
	var declared []string
	for _, dir := range []string{"../zklock", "../zklock/election", "../zklock/fence", "../zklock/driver"} {
		declared = append(declared, declaredErrors(t, dir)...)
	}
	slices.Sort(declared)
	parents := drawn(t)
	if names := slices.Sorted(maps.Keys(exportedErrors)); !slices.Equal(names, declared) {
		t.Errorf("the packages declare\n%q, and the test knows\n%q", declared, names)
	}
	if names := slices.Sorted(maps.Keys(parents)); !slices.Equal(names, declared) {
		t.Errorf("the packages declare\n%q, and docs/guarantees.md draws\n%q", declared, names)
	}
	for name, err := range exportedErrors {
		for other, target := range exportedErrors {
			if want := other == name || other == parents[name]; errors.Is(err, target) != want {
				t.Errorf("%s matches %s: %t, and the drawing says %t", name, other, !want, want)
			}
		}
	}
}

// TestDocumentedErrorsAreOneLine: CONTRIBUTING.md says that errors are one line. errors.Join puts a line
// break between texts, so the packages that programs import, and the command, use package oneline.
func TestDocumentedErrorsAreOneLine(t *testing.T) {
	files := 0
	for _, dir := range []string{"zklock", "middleware", "interceptors", "tracing", "contrib", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && slices.Contains([]string{"testdata", "testkit", "drivertest"}, e.Name()):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files++
			text, err := os.ReadFile(path)
			if n := strings.Count(string(text), "errors.Join("); n > 0 {
				t.Errorf("%s has errors.Join %d times: use oneline.Join", path, n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 200 {
		t.Errorf("only %d files were looked at", files)
	}
}
