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

// A configuration error that no retry can cure is returned at once, and not only after
// connect_timeout.
func TestMisconfigurationFailsAtOnce(t *testing.T) {
	for _, c := range []struct {
		what   string
		params map[string]string
		want   string
		is     error
		opts   []memdriver.Option
	}{
		{what: "missing root", params: map[string]string{"create_root": "false"}, want: "create_root=false", is: zklock.ErrBadEnsemble},
		{what: "short session", want: "session timeout too short", is: zklock.ErrBadEnsemble, opts: []memdriver.Option{memdriver.WithTickTime(100 * time.Millisecond)}},
		{what: "acl=creator without credentials", params: map[string]string{"acl": "creator"}, want: "/zklock", is: zklock.ErrNoAuth},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := connect(t, memdriver.New(c.opts...).Connector(), c.params)
			began := time.Now()
			for _, f := range []func() error{
				func() error { _, err := client.Mutex("x").Acquire(t.Context()); return err },
				func() error { _, err := client.Mutex("x").TryAcquire(t.Context()); return err },
				func() error { return client.Ping(t.Context()) },
			} {
				err := f()
				if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("%s: %v", c.what, err)
				}
			}
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Errorf("%s: the errors took %v, want at most 100ms", c.what, d)
			}
		})
	}
}

func TestCreatorsNodesAreTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		params := map[string]string{"acl": "creator"}
		a := connect(t, e.As("app", driver.NewSecret("secret")), params)
		b := connect(t, e.As("app", driver.NewSecret("secret")), params)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		_, err := connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second))
		if !errors.Is(err, zklock.ErrNoAuth) {
			t.Errorf("a client without credentials: %v, want ErrNoAuth", err)
		}
		mustRelease(t, l)
		mustRelease(t, <-next)
	})
}

func TestOpenRefusesWhatIsWrong(t *testing.T) {
	for _, params := range []string{"x=1", "session_timeout=1", "session_timeout=5s", "tick_time=0s", "handover_limit=-1", "max_names=x", "acl=all", "create_root=perhaps", "pool_max_sessions=0", "acl=open&acl=open", "session_timeout"} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s: panic: %v", params, p)
				}
			}()
			c, err := zklock.Open("mem://?" + params)
			if err == nil {
				_ = c.Close()
				t.Errorf("Open accepts %s", params)
				return
			}
			if key, _, _ := strings.Cut(params, "="); !strings.Contains(err.Error(), key) {
				t.Errorf("%s: the error does not name the key: %v", params, err)
			}
		}()
	}
}

func TestNilsAndZeroValuesDoNotPanic(t *testing.T) {
	var nilClient *zklock.Client
	zero := &zklock.Client{}
	ctx := t.Context()
	for _, c := range []*zklock.Client{nilClient, zero} {
		for _, a := range []zklock.Acquirer{c.Mutex("x"), c.RWMutex("x").Reader(), c.RWMutex("x").Writer(), c.Semaphore("x", 1), zklock.All(c.Mutex("x"))} {
			if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrMisuse) {
				t.Errorf("%T: %v", a, err)
			}
			if _, err := a.TryAcquire(ctx); !errors.Is(err, zklock.ErrMisuse) {
				t.Errorf("%T: %v", a, err)
			}
		}
		for _, err := range []error{c.Ping(ctx), c.Close(), c.Shutdown(ctx), c.Break(ctx, "x", "y"), c.Revoke(ctx, "x", "y", "r"), c.Healthy()} {
			if err == nil {
				t.Error("a method of a nil or zero Client returned no error")
			}
		}
		if _, err := c.Contenders(ctx, "x"); err == nil {
			t.Error("Contenders of a nil or zero Client returned no error")
		}
		if c.Stats() != (zklock.Stats{}) {
			t.Error("a nil or zero Client has Stats that are not zero")
		}
	}
	for _, a := range []zklock.Acquirer{(*zklock.Mutex)(nil), (*zklock.Reader)(nil), (*zklock.Semaphore)(nil), (*zklock.RWMutex)(nil).Writer(), (*zklock.RWMutex)(nil).Reader(), &zklock.Mutex{}, &zklock.Reader{}, &zklock.Semaphore{}, (&zklock.RWMutex{}).Reader()} {
		_ = a.Name()
		if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%T: %v", a, err)
		}
		if err := zklock.Do(ctx, a, func(context.Context, *zklock.Lock) error { t.Error("Do called the function"); return nil }); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%T: %v", a, err)
		}
	}
	for _, a := range []zklock.Acquirer{zklock.All(), zklock.All(nil), zklock.All((*zklock.Mutex)(nil))} {
		if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("%v", err)
		}
	}
	if err := (*zklock.Lock)(nil).Release(ctx); !errors.Is(err, zklock.ErrReleased) {
		t.Error(err)
	}
	if _, err := zklock.OpenConnector(nil); err == nil {
		t.Error("OpenConnector(nil) returned no error")
	}
}
