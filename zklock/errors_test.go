package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// What only an operator can mend is one error, with a reason that programs can compare. It is not
// ErrUnavailable: a caller that tries again, or a proxy that follows Retry-After, would never
// succeed.
func TestBadEnsembleHasAReason(t *testing.T) {
	calls := map[string]func(context.Context, *zklock.Client) error{
		"acquire": func(ctx context.Context, c *zklock.Client) error { _, err := c.Mutex("x").Acquire(ctx); return err },
		"try": func(ctx context.Context, c *zklock.Client) error {
			_, err := c.Mutex("x").TryAcquire(ctx, zklock.WithFailFast())
			return err
		},
		"do": func(ctx context.Context, c *zklock.Client) error {
			return zklock.Do(ctx, c.Mutex("x"), func(context.Context, *zklock.Lock) error { return nil })
		},
	}
	reads := map[string]func(context.Context, *zklock.Client) error{
		"ping":       func(ctx context.Context, c *zklock.Client) error { return c.Ping(ctx) },
		"contenders": func(ctx context.Context, c *zklock.Client) error { _, err := c.Contenders(ctx, "x"); return err },
		"watch": func(ctx context.Context, c *zklock.Client) (last error) {
			for _, err := range c.Watch(ctx, "x") {
				last = err // the sequence ends, since trying again does not help
			}
			return last
		},
	}
	check := func(t *testing.T, c *zklock.Client, reason string, of ...map[string]func(context.Context, *zklock.Client) error) {
		t.Helper()
		for _, calls := range of {
			for verb, call := range calls {
				err := call(t.Context(), c)
				if !errors.Is(err, zklock.ErrBadEnsemble) || zklock.Reason(err) != reason || zklock.Reason(fmt.Errorf("wrapped: %w", err)) != reason {
					t.Errorf("%s: %v, with the reason %q; want ErrBadEnsemble with the reason %q", verb, err, zklock.Reason(err), reason)
				}
				if of := corekit.BranchesOf(err); len(of) != 1 {
					t.Errorf("%s: %v matches the branches %v, want one", verb, err, of)
				}
			}
		}
	}
	t.Run("no root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, connect(t, memdriver.New().Connector(), map[string]string{"create_root": "false"}), "root_missing", calls, reads)
		})
	})
	t.Run("a short session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, connect(t, memdriver.New(memdriver.WithTickTime(100*time.Millisecond)).Connector(), nil), "session_timeout", calls, reads)
		})
	})
	t.Run("an older snapshot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			before, after := memdriver.New(), memdriver.New()
			both := &twoEnsembles{Connector: before.Connector()}
			c := connect(t, both, nil)
			for range 20 {
				mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			}
			both.set(after.Connector())
			before.ExpireAll()
			time.Sleep(time.Second)
			check(t, c, "token_regression", calls)
		})
	})
	for _, err := range append([]error{nil, errors.New("other"), zklock.ErrBadEnsemble, zklock.ErrOutage}, corekit.Branches...) {
		if reason := zklock.Reason(err); reason != "" {
			t.Errorf("%v has the reason %q", err, reason)
		}
	}
}

// Another try does not help against a mistake in the program. A conflict with other contenders may end.
func TestMisuseIsNoConflict(t *testing.T) {
	var none *zklock.Client
	if errors.Is(zklock.ErrMisuse, zklock.ErrConflict) {
		t.Error("ErrMisuse matches ErrConflict")
	}
	for verb, err := range map[string]error{"ping": none.Ping(t.Context()), "healthy": none.Healthy(), "shutdown": none.Shutdown(t.Context())} {
		if !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%s of a nil Client: %v, want ErrMisuse", verb, err)
		}
	}
}

// TestErrorOpIsDocumented compares the list in the documentation of Error.Op with the
// values that the package uses.
func TestErrorOpIsDocumented(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	doc := ""
	fset := gotoken.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Error" {
					used = append(used, opOf(t, fset, n))
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "annotate" {
					used = append(used, literal(t, fset, n.Args[1]))
				}
			case *ast.FuncDecl:
				return n.Name.Name != "annotate" // its callers have the values
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Error" {
					for _, f := range s.Fields.List {
						if f.Names[0].Name == "Op" {
							doc = f.Doc.Text()
						}
					}
				}
			}
			return true
		})
	}
	slices.Sort(used)
	used = slices.Compact(used)
	_, list, ok := strings.Cut(doc, ": ")
	documented := strings.Split(strings.TrimSuffix(strings.Join(strings.Fields(list), " "), "."), ", ")
	if !ok || !slices.Equal(documented, used) {
		t.Errorf("the documentation of Error.Op lists %q, the package uses %q", documented, used)
	}
}

// opOf returns the Op of a literal of Error. Op must be a string literal there, so that the
// values can be listed.
func opOf(t *testing.T, fset *gotoken.FileSet, lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok || kv.Key.(*ast.Ident).Name != "Op" {
			continue
		}
		return literal(t, fset, kv.Value)
	}
	t.Errorf("%v: an Error has no Op", fset.Position(lit.Pos()))
	return ""
}

func literal(t *testing.T, fset *gotoken.FileSet, e ast.Expr) string {
	value, ok := e.(*ast.BasicLit)
	if !ok {
		t.Errorf("%v: the Op of an Error is not a string literal", fset.Position(e.Pos()))
		return ""
	}
	op, err := strconv.Unquote(value.Value)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// The error of an acquisition whose context is that of another lock, and has ended with it, matches
// ErrNotAcquired and the reason of that end. docs/guarantees.md names these errors as ones that match
// two branches of the tree.
func TestAcquisitionEndedByAnotherLockMatchesTwoBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		holder, waiter := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(holder.Mutex("inner").Acquire(t.Context()))
		for because, end := range map[error]func(l *zklock.Lock){
			zklock.ErrReleased: func(l *zklock.Lock) { mustRelease(t, l) },
			zklock.ErrLost: func(l *zklock.Lock) {
				found, err := holder.Contenders(t.Context(), "outer")
				if err != nil || len(found) != 1 {
					t.Fatalf("%+v, %v", found, err)
				}
				if err := holder.Break(t.Context(), "outer", found[0].Node); err != nil {
					t.Fatal(err)
				}
			},
		} {
			outer := mustLock(t)(waiter.Mutex("outer").Acquire(t.Context()))
			ctx, cancel := outer.Context(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := waiter.Mutex("inner").Acquire(ctx)
				failed <- err
			}()
			synctest.Wait()
			end(outer)
			err := <-failed
			if of := corekit.BranchesOf(err); len(of) != 2 || !slices.Contains(of, zklock.ErrNotAcquired) || !errors.Is(err, because) || !errors.Is(err, context.Canceled) {
				t.Errorf("%v matches %v, want ErrNotAcquired and %v", err, of, because)
			}
			cancel()
			_ = outer.Release(t.Context())
		}
		mustRelease(t, held)
	})
}

// What the ensemble refuses for good while the root, the znode of a name or a queue node is made ends
// an acquisition at once, with one error of package zklock. TestPermanentRefusalsEndAtOnce of the
// integration tests has the answers of a real server.
func TestPermanentRefusalsEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		for _, path := range []string{"/a", "/b", "/c", "/c/name", "/d"} {
			mode := driver.Ephemeral
			if path == "/c" || path == "/d" {
				mode = driver.Persistent
			}
			if _, err := s.Create(t.Context(), path, nil, mode, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		refuse := func(kind faultdriver.Kind, err error) driver.Connector {
			return faultdriver.Wrap(e.Connector(), faultdriver.On(kind, faultdriver.Fail(err)))
		}
		creator := func(c *zklock.Config) { c.ACL = "creator" }
		for _, k := range []struct {
			what      string
			connector driver.Connector
			root      string
			set       func(*zklock.Config)
			is        error
			because   error
			says      string
		}{
			{"an ephemeral znode above the root", e.Connector(), "/a/x/root", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /a/x: another program has an ephemeral znode"},
			{"an ephemeral root", e.Connector(), "/b", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /b/name: another program"},
			{"an ephemeral name", e.Connector(), "/c", nil, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /c/name: another program"},
			{"an ephemeral znode above a name that is a path", e.Connector(), "/c/name/x", func(c *zklock.Config) { c.Dialect = "kazoo" }, zklock.ErrConflict, driver.ErrNoChildrenForEphemerals, "conflict: /c/name/x: another program"},
			{"a quota above the root", refuse(faultdriver.Create, driver.ErrQuotaExceeded), "/d/root", nil, zklock.ErrUnavailable, driver.ErrQuotaExceeded, "used up: /d: raise the quota"},
			{"a quota on a name", refuse(faultdriver.Multi, driver.ErrQuotaExceeded), "/d", nil, zklock.ErrUnavailable, driver.ErrQuotaExceeded, "/d/name: raise the quota"},
			{"sessions that can have no queue nodes", refuse(faultdriver.Multi, driver.ErrLocalSession), "/d", nil, zklock.ErrUnavailable, driver.ErrLocalSession, "localSessionsUpgradingEnabled"},
			{"an access list that needs an identity", e.Connector(), "/f/root", creator, zklock.ErrNoAuth, driver.ErrInvalidACL, "the servers refuse the access list"},
			{"a mistyped scheme", e.Connector(), "/f/root", func(c *zklock.Config) { c.ACL = "ip:10.0.0.1:r,digset:ops:HASH:cdrwa" }, zklock.ErrNoAuth, driver.ErrInvalidACL, `the access list (did you mean the scheme "digest"?). acl=creator`},
		} {
			cfg := zklock.Config{Connector: k.connector, Root: k.root}
			if k.set != nil {
				k.set(&cfg)
			}
			c, err := zklock.OpenConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for verb, call := range map[string]func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error){
				"Acquire": c.Mutex("name").Acquire, "TryAcquire": c.Mutex("name").TryAcquire,
			} {
				began := time.Now()
				_, err := call(t.Context())
				if !errors.Is(err, k.is) || !errors.Is(err, k.because) || len(corekit.BranchesOf(err)) != 1 || !strings.Contains(err.Error(), k.says) {
					t.Errorf("%s: %s: %v, want %v because of %v, and %q", k.what, verb, err, k.is, k.because, k.says)
				}
				if d := time.Since(began); d > 0 { // in a bubble only a wait takes time
					t.Errorf("%s: %s took %v, want no wait", k.what, verb, d)
				}
			}
			_ = c.Close()
		}
		if err := s.Close(t.Context()); err != nil { // the ephemeral znodes go with their session
			t.Fatal(err)
		}
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("name").Acquire(t.Context())))
	})
}

// A misuse of the package fails at once, without a request to the ensemble. The error's
// text is about the misuse and nothing else.
func TestMisuseIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		ctx := t.Context()
		do := func(a zklock.Acquirer) func() error {
			return func() error { return zklock.Do(ctx, a, func(context.Context, *zklock.Lock) error { return nil }) }
		}
		acquire := func(a zklock.Acquirer) func() error {
			return func() error { _, err := a.Acquire(ctx); return err }
		}
		for name, k := range map[string]struct {
			call func() error
			says string
			is   error
		}{
			"no permits":         {acquire(c.Semaphore("s", 0)), `zklock: acquire "s": a semaphore has 1 to 10000 permits, not 0`, zklock.ErrConflict},
			"negative permits":   {acquire(c.Semaphore("s", -1)), `not -1`, zklock.ErrConflict},
			"nil Acquirer":       {do(nil), "zklock: acquire: the Acquirer is nil", zklock.ErrMisuse},
			"nil Mutex":          {do((*zklock.Mutex)(nil)), "zklock: acquire: the Acquirer is nil", zklock.ErrMisuse},
			"nil Semaphore":      {acquire((*zklock.Semaphore)(nil)), "the Acquirer is nil", zklock.ErrMisuse},
			"nil Reader":         {acquire((*zklock.RWMutex)(nil).Reader()), "the Acquirer is nil", zklock.ErrMisuse},
			"zero Mutex":         {acquire(&zklock.Mutex{}), "the lock was not made by a Client's method", zklock.ErrMisuse},
			"nil Client":         {acquire((*zklock.Client)(nil).Mutex("x")), "Client was not made by Open", zklock.ErrMisuse},
			"zero Client":        {acquire(new(zklock.Client).Mutex("x")), "Client was not made by Open", zklock.ErrMisuse},
			"nil function":       {func() error { return zklock.Do(ctx, c.Mutex("x"), nil) }, `zklock: acquire "x": the function is nil`, zklock.ErrMisuse},
			"All of nothing":     {acquire(zklock.All()), "All of no locks", zklock.ErrConflict},
			"All of nil":         {acquire(zklock.All(nil)), "All of a nil lock", zklock.ErrMisuse},
			"All of a nil Mutex": {acquire(zklock.All((*zklock.Mutex)(nil))), "All of a nil lock", zklock.ErrMisuse},
			"All of permits":     {acquire(zklock.All(c.Semaphore("s", 1))), "not *zklock.Semaphore", zklock.ErrConflict},
		} {
			err := k.call()
			if !errors.Is(err, k.is) {
				t.Errorf("%s: %v, want an error that matches %q", name, err, k.is)
				continue
			}
			// ErrMisuse distinguishes a mistake in the program from a bad name, which may come from a
			// user's request, and from a conflict, which may come from the names and the numbers of one.
			if of := corekit.BranchesOf(err); len(of) != 1 {
				t.Errorf("%s: %v matches %v, want one error without a parent", name, err, of)
			}
			if !strings.Contains(err.Error(), k.says) || strings.Contains(err.Error(), k.is.Error()) {
				t.Errorf("%s: %q, want %q and not %q", name, err, k.says, k.is)
			}
		}
		if _, err := c.Mutex("/x").Acquire(ctx); !errors.Is(err, zklock.ErrInvalidName) || errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("a bad name: %v", err)
		}
		if n := len(e.Sessions()); n != 0 {
			t.Errorf("%d sessions were opened, want none", n)
		}
	})
}

// TestCancelBeforeARequestIsUnclassified: the context is cancelled right before a request
// of the wait. The error nevertheless matches ErrNotAcquired or ErrUnavailable.
func TestCancelBeforeARequestIsUnclassified(t *testing.T) {
	for _, kind := range []string{"parent", "enqueue", "list", "watch"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				holder := connect(t, e.Connector(), nil)
				l, err := holder.Mutex("a").Acquire(t.Context())
				must(t, l, err)
				ctx, cancel := context.WithCancel(t.Context())
				hooks := zklock.Hooks{Operation: func(c context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
					if ev.Kind == kind {
						cancel()
					}
					return c, nil
				}}
				c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
				_, err = c.Mutex("a").Acquire(ctx)
				if !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("cancelled at %s: %v, want context.Canceled with ErrNotAcquired or ErrUnavailable", kind, err)
				}
				t.Log(err)
				l.Release(t.Context())
			})
		})
	}
}

// TestNoAuthOnRootIsClassified: a client without the right to create below the root gets
// ErrNoAuth.
func TestNoAuthOnRootIsClassified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		owner := e.As("owner", driver.NewSecret("s3cret"))
		oc := connect(t, owner, map[string]string{"acl": "creator"})
		l, err := oc.Mutex("x").Acquire(t.Context())
		must(t, l, err)
		l.Release(t.Context())
		for _, name := range []string{"x", "y"} {
			c := connect(t, e.Connector(), nil)
			_, err = c.Mutex(name).Acquire(t.Context())
			if !errors.Is(err, zklock.ErrNoAuth) {
				t.Errorf("lock %s: %v, want ErrNoAuth", name, err)
			}
		}
	})
}

func TestNoAuthCreateIsClassified(t *testing.T) {
	for _, on := range []faultdriver.Kind{faultdriver.Get, faultdriver.Children, faultdriver.Watch, faultdriver.Multi} {
		t.Run(on.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				h := connect(t, e.Connector(), nil)
				l, err := h.Mutex("a").Acquire(t.Context())
				must(t, l, err)
				inj := faultdriver.Path("/zklock/...", faultdriver.If("below", func(op faultdriver.Op) bool { return op.Paths[0] != "/zklock" }, faultdriver.On(on, faultdriver.Fail(driver.ErrNoAuth))))
				c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
				_, err = c.Mutex("a").Acquire(t.Context(), zklock.WithWait(time.Second))
				if !errors.Is(err, zklock.ErrNoAuth) {
					t.Errorf("Acquire: %v, want ErrNoAuth", err)
				}
				l.Release(t.Context())
			})
		})
	}
}

// TestRootUnreadableIsUnavailable: the root cannot be read for connect_timeout.
func TestRootUnreadableIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		inj := faultdriver.On(faultdriver.Get, faultdriver.Drop())
		c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
		_, err := c.Mutex("a").Acquire(t.Context())
		if !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("Acquire: %v, want ErrUnavailable", err)
		}
		t.Log(err)
	})
}
