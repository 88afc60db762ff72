package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Each mistake in a URL has its own error, which names the mistake. Package
// integration_test checks the other mistakes, with the other schemes.
func TestMistakesInURLs(t *testing.T) {
	for url, says := range map[string]string{
		"":                               "the URL is empty",
		" mem://a:2181/x":                "begins or ends with a space or a line break",
		"mem://a:2181/x\n":               "begins or ends with a space or a line break",
		"mem://a:2181, b:2181/x":         "space in its list of hosts",
		"mem://a:2181 b:2181/x":          "space in its list of hosts",
		"mem://a:2181/x,b:2181/x":        "host after the root",
		"mem://a:2181/x,b:2181":          "host after the root",
		"mem://a:2181/x/y,b:2181/x/y":    "host after the root",
		"mem://a/x,b/x,c/x":              "host after the root",
		"mem://a:2181/x/,b:2181/x/":      "host after the root",
		"mem://a:2181,mem://b:2181/x":    "the scheme is given once",
		"mem://a:2181/x,mem://b:2181/x":  "the scheme is given once",
		"mem://a:2181/x//":               "empty",
		"mem://a:2181//":                 "want an absolute path below",
		"mem://a:2181/zookeeper/":        "belongs to the servers",
		"mem://a:2181;b:2181/x":          "joined by commas",
		"mem://a/x&session_timeout=10s":  "settings follow a ?",
		"mem://a/x;session_timeout=10s":  "settings follow a ?",
		"mem://a/x y":                    "space in its root",
		"mem://a/x\u00a0y":               "space in its root",
		"mem://a,2181/x":                 "a port follows its host and a colon",
		"MEM://a/x":                      "lower case",
		"mem:/a/x":                       "one slash after its scheme",
		"mem:a/x":                        "has no scheme",
		"a:2181/x":                       "has no scheme",
		"mem://a:2181/x?session_timeout": "session_timeout",
	} {
		c, err := zklock.Open(url)
		if err == nil {
			_ = c.Close()
			t.Errorf("Open accepts %q", url)
			continue
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %q does not say %q", url, err, says)
		}
	}
}

// A slash at the end of a root in a URL is ignored. A Config accepts roots that a URL must not have
// because they look like a mistake there.
func TestRootsThatAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for url, path := range map[string]string{
			"mem://a/x/":     "/x/n",
			"mem://a/x/y/":   "/x/y/n",
			"mem://a/":       "/zklock/n",
			"mem://a/x:y/z-": "/x:y/z-/n",
			"mem://2b/x":     "/x/n",
			"mem://42/x":     "/x/n",
			"mem://a/x,y/z":  "/x,y/z/n",
			"mem://a/x=y":    "/x=y/n",
		} {
			c, err := zklock.Open(url)
			if err != nil {
				t.Errorf("%q: %v", url, err)
				continue
			}
			if got := c.Mutex("n").Path(); got != path {
				t.Errorf("%q: a lock's znode is %s, want %s", url, got, path)
			}
			_ = c.Close()
		}
		for root, path := range map[string]string{"/x": "/x/n", "/x,y/z w": "/x,y/z w/n", "/a=b;c&d": "/a=b;c&d/n"} {
			c, err := zklock.OpenConfig(zklock.Config{Scheme: "mem", Root: root})
			if err != nil {
				t.Errorf("%q: %v", root, err)
				continue
			}
			if got := c.Mutex("n").Path(); got != path {
				t.Errorf("Config.Root %q: a lock's znode is %s, want %s", root, got, path)
			}
			_ = c.Close()
		}
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
			"All of nil":         {acquire(zklock.All(nil)), "All of a nil lock", zklock.ErrConflict},
			"All of a nil Mutex": {acquire(zklock.All((*zklock.Mutex)(nil))), "All of a nil lock", zklock.ErrConflict},
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
