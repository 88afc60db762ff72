package zklock_test

import (
	"context"
	"errors"
	"reflect"
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
	for _, a := range []zklock.Acquirer{(*zklock.Mutex)(nil), (*zklock.Reader)(nil), (*zklock.Semaphore)(nil), (*zklock.RWMutex)(nil).Writer(), (*zklock.RWMutex)(nil).Reader(), &zklock.Mutex{}, &zklock.Reader{}, &zklock.Semaphore{}, (&zklock.RWMutex{}).Reader(), zklock.All(nil), zklock.All((*zklock.Mutex)(nil))} {
		_ = a.Name()
		if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%T: %v", a, err)
		}
		if err := zklock.Do(ctx, a, func(context.Context, *zklock.Lock) error { t.Error("Do called the function"); return nil }); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%T: %v", a, err)
		}
	}
	if _, err := zklock.All().Acquire(ctx); !errors.Is(err, zklock.ErrConflict) {
		t.Error(err)
	}
	if err := (*zklock.Lock)(nil).Release(ctx); !errors.Is(err, zklock.ErrReleased) {
		t.Error(err)
	}
	if _, err := zklock.OpenConnector(nil); err == nil {
		t.Error("OpenConnector(nil) returned no error")
	}
}

// keyed is a driver that has keys, and takes what it is given.
type keyed struct{ urls chan driver.URL }

func (keyed) Keys() []string { return []string{"tls_ca", "tls_cert"} }
func (k keyed) OpenConnector(u driver.URL) (driver.Connector, error) {
	select {
	case k.urls <- u:
	default:
	}
	return memdriver.New().Connector(), nil
}

var lastKeyed = keyed{make(chan driver.URL, 1)}

func init() { zklock.Register("keyed", lastKeyed) }

// OpenConfig gives the driver what a URL with the same settings gives it, and the client the
// defaults for what is zero.
func TestOpenConfigLikeOpen(t *testing.T) {
	const url = "keyed://u:p@h:1,i/r?tls_ca=a"
	want := zklock.Config{Scheme: "keyed", User: "u", Password: driver.NewSecret("p"), Hosts: []string{"h:1", "i"}, Root: "/r", DriverSettings: map[string]string{"tls_ca": "a"}}
	parsed, err := zklock.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*zklock.Client, error){
		"URL":     func() (*zklock.Client, error) { return zklock.Open(url) },
		"parsed":  func() (*zklock.Client, error) { return zklock.OpenConfig(parsed) },
		"literal": func() (*zklock.Client, error) { return zklock.OpenConfig(want) },
	} {
		c, err := open()
		if err != nil {
			t.Fatal(err)
		}
		u := <-lastKeyed.urls
		if u.Scheme != "keyed" || u.User != "u" || u.Password.Reveal() != "p" || !reflect.DeepEqual(u.Hosts, want.Hosts) || u.Root != "/r" || u.Params.Encode() != "tls_ca=a" {
			t.Errorf("%s: the driver got %+v", name, u)
		}
		if acl := c.ACL(); acl[0].Scheme != "auth" {
			t.Errorf("%s: the access list is %v, want that of the user", name, acl)
		}
		if n := c.Stats().MaxSessions; n != 2 {
			t.Errorf("%s: %d sessions at most, want 2", name, n)
		}
		_ = c.Close()
	}
}

// OpenConfig refuses what Open would refuse in a URL.
func TestOpenConfigRefuses(t *testing.T) {
	for says, cfg := range map[string]zklock.Config{
		`neither a Scheme nor a Connector`:                   {},
		`unknown scheme "etcd"`:                              {Scheme: "etcd"},
		`DriverSettings: unknown key "tls_ca" (known: none)`: {Scheme: "mem", DriverSettings: map[string]string{"tls_ca": "a"}},
		`DriverSettings: unknown key "tls_sert": did you mean "tls_cert"? (known: tls_ca, tls_cert)`: {Scheme: "keyed", DriverSettings: map[string]string{"tls_sert": "a"}},
		`key "keep" in DriverSettings is not one of the driver: set the field`:                       {Scheme: "mem", DriverSettings: map[string]string{"keep": "2s"}},
		`key "create_root" in DriverSettings is not one of the driver: set the field`:                {Scheme: "keyed", DriverSettings: map[string]string{"create_root": "true"}},
		`key "acl" in DriverSettings is not one of the driver: set the field`:                        {Scheme: "keyed", DriverSettings: map[string]string{"acl": "open"}},
		`unknown scheme "keyd": did you mean "keyed"? (registered: `:                                 {Scheme: "keyd"},
		`the Scheme of the Config is a URL: pass that to ParseURL or Open`:                           {Scheme: "zk://svc:hunter2@zk1"},
		`the Scheme of the Config has a character other than`:                                        {Scheme: "svc:hunter2@zk1"},
		`the Root of the Config is a URL: pass that to ParseURL or Open`:                             {Scheme: "mem", Root: "zk://svc:hunter2@zk1/root"},
		`several colons`: {Scheme: "keyed", Hosts: []string{"zk://svc:hunter2@zk1"}},
		`URL host "svc" has something other than a port`:                       {Scheme: "keyed", Hosts: []string{"svc:hunter2@zk1"}},
		`key "session_dir": want the path of a directory`:                      {Scheme: "mem", SessionDir: "zk://svc:hunter2@zk1"},
		`want the path of a directory (not shown`:                              {Scheme: "mem", SessionDir: "svc:hunter2@zk1/x"},
		`key "session_dir": want the path of`:                                  {Scheme: "mem", SessionDir: "-/svc:hunter2@zk1/x"},
		`key "session_dir": want the path`:                                     {Scheme: "mem", SessionDir: "hunter2@zk1"},
		`the character`:                                                        {Scheme: "mem", Root: "/l?password=hunter2\ufffe"},
		`root (not shown: it may have a password in it): p`:                    {Scheme: "mem", Root: "/l?password=hunter2%"},
		`it): it has an empty segment`:                                         {Scheme: "mem", Root: "/l&password=hunter2/"},
		`it): it has the segment ".."`:                                         {Scheme: "mem", Root: "/svc:hunter2/../x"},
		`colon in it`:                                                          {Scheme: "keyed", User: "svc:hunter2"},
		`want one of zklock, curator, zk, kazoo, latch: did you mean "kazoo"?`: {Scheme: "mem", Dialect: "kazo"},
		`want one of zklock, curator, zk, kazoo, latch`:                        {Scheme: "mem", Dialect: "zk://svc:hunter2@zk1"},
		`such as sasl:svc:cdrwa: did you mean "creator"?`:                      {Scheme: "mem", ACL: "creater"},
		`key "acl": want creator or open, or`:                                  {Scheme: "mem", ACL: "zk://svc:hunter2@zk1"},
		`key "session_timeout": want from 1ms to`:                              {Scheme: "mem", SessionTimeout: -1},
		`key "session_timeout": 1s is too short`:                               {Scheme: "mem", SessionTimeout: time.Second},
		`key "keep": want from 0s`:                                             {Scheme: "mem", Keep: -time.Second},
		`key "keep" needs hand-over`:                                           {Scheme: "mem", Keep: time.Second, HandoverLimit: -1},
		`key "max_waiters": want a number from 0`:                              {Scheme: "mem", MaxWaiters: -1},
		`key "pool_max_sessions": want a number from 1`:                        {Scheme: "mem", PoolMaxSessions: -1},
		`key "dialect": want one of`:                                           {Scheme: "mem", Dialect: "etcd"},
		`key "acl": want creator or open`:                                      {Scheme: "mem", ACL: "all"},
		`want an absolute path`:                                                {Scheme: "mem", Root: "locks"},
		`a character that host names do not have`:                              {Scheme: "mem", Hosts: []string{"a b"}},
		`credentials without a user name`:                                      {Scheme: "mem", Password: driver.NewSecret("hunter2")},
		`user name has a colon`:                                                {Scheme: "mem", User: "a:b"},
		`key "handover_time": want from 0s to 87600h0m0s`:                      {Scheme: "mem", HandoverTime: 1 << 62},
		`key "pool_max_sessions": want a number from 1 to`:                     {Scheme: "mem", PoolMaxSessions: 1001},
	} {
		c, err := zklock.OpenConfig(cfg)
		if err == nil {
			_ = c.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "zklock: open: ") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q", cfg, err, says)
		}
	}
}

// With a Connector the fields for the driver have no effect, so a program's own settings serve in
// its tests.
func TestConnectorReplacesTheDriver(t *testing.T) {
	cfg, err := zklock.ParseURL("keyed://u:p@h/r?tls_ca=a")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connector = memdriver.New().Connector()
	c := openConfig(t, cfg)
	mustRelease(t, mustLock(t)(c.Mutex("a").Acquire(t.Context())))
	if path := c.Mutex("a").Path(); path != "/r/a" {
		t.Errorf("the lock is at %s", path)
	}
}

// The driver gets the options in their order. A client with such options has an identity, so its
// znodes belong to it.
func TestDriverOptions(t *testing.T) {
	c, err := zklock.Open("keyed://h", zklock.WithDriverOption(1), zklock.WithDriverOption("two"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if u := <-lastKeyed.urls; !reflect.DeepEqual(u.Options, []any{1, "two"}) {
		t.Errorf("the driver got the options %v", u.Options)
	}
	if acl := c.ACL(); !reflect.DeepEqual(acl, driver.CreatorACL(driver.PermAll)) {
		t.Errorf("the access list is %v, want that of the creator", acl)
	}
	if _, err := zklock.Open("mem://", zklock.WithDriverOption(1)); err == nil || !strings.Contains(err.Error(), "type int") {
		t.Errorf("an option that the driver does not know: %v", err)
	}
}
