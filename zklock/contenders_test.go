package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// B15, L4
func TestForeignChildrenAndDataAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/zklock/x", []byte("somebody's"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, child := range []string{"notes", "_c_", "_c_x", "x-0000000001"} {
			if _, err := s.Create(t.Context(), "/zklock/x/"+child, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second)))
			if l.Token().IsZero() {
				t.Error("zero token")
			}
			mustRelease(t, l)
		}
		if n, err := s.Get(t.Context(), "/zklock/x"); err != nil || string(n.Data) != "somebody's" {
			t.Errorf("data is %q now, %v", n.Data, err)
		}
		names, _, _ := s.Children(t.Context(), "/zklock/x")
		if len(names) != 4 {
			t.Errorf("children: %v", names)
		}
		if _, err := s.Create(t.Context(), "/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("beside another recipe: %v", err)
		}
		synctest.Wait()
		names, _, _ = s.Children(t.Context(), "/zklock/x")
		if len(names) != 5 {
			t.Errorf("children: %v", names)
		}
	})
}

// B34, L3
func TestNamesDoNotMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		for _, name := range []string{"a", "a/b", "a/b/c", "a%2Fb", "ab", "A", "a.b", "_c_x-__WRIT__0000000000", "a/_c_x-__WRIT__0000000000"} {
			defer mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context(), zklock.WithWait(time.Second))))
		}
	})
}

// TestNodeDataBound: node data at most 1 KiB.
func TestNodeDataBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		hooks := zklock.Hooks{Inject: func(context.Context) string { return strings.Repeat("<", 256) }}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks), zklock.WithIdentity(zklock.Identity{Host: strings.Repeat("<", 255)}))
		m := c.Mutex("a")
		l, err := m.Acquire(t.Context(), zklock.WithLabel(strings.Repeat("<", 256)))
		must(t, l, err)
		ds, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := ds.Children(t.Context(), m.Path())
		if err != nil {
			t.Fatal(err)
		}
		n, err := ds.Get(t.Context(), m.Path()+"/"+names[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Data) > 1024 {
			t.Errorf("%d bytes of data", len(n.Data))
		}
		cs, err := c.Contenders(t.Context(), "a")
		if err != nil || cs[0].Foreign || cs[0].Label == "" {
			t.Errorf("%+v %v", cs, err)
		}
		// a downgrade must be seen by others
		d := connect(t, e.Connector(), nil)
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := d.RWMutex("a").Reader().Acquire(t.Context(), zklock.WithWait(time.Second))
		if err != nil {
			t.Errorf("reader beside a downgraded lock: %v", err)
		} else {
			r.Release(t.Context())
		}
		l.Release(t.Context())
		ds.Close(t.Context())
	})
}
