package zklock_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A Config that ParseURL returns equals the literal with the same settings. So the two behave
// alike. A setting that the URL does not have is the zero value.
func TestParseURLReturnsTheLiteral(t *testing.T) {
	seen := zklock.Config{}
	for url, want := range map[string]zklock.Config{
		"mem://":                                    {Scheme: "mem"},
		"mem://a/x/y/":                              {Scheme: "mem", Hosts: []string{"a"}, Root: "/x/y"},
		"mem://a:1,[::1]:2":                         {Scheme: "mem", Hosts: []string{"a:1", "[::1]:2"}},
		"mem://?session_timeout=20s":                {Scheme: "mem", SessionTimeout: 20 * time.Second},
		"mem://?tick_time=1s":                       {Scheme: "mem", TickTime: time.Second},
		"mem://?connect_timeout=1s":                 {Scheme: "mem", ConnectTimeout: time.Second},
		"mem://?loss_delay=1s":                      {Scheme: "mem", LossDelay: time.Second},
		"mem://?pool_max_sessions=3":                {Scheme: "mem", PoolMaxSessions: 3},
		"mem://?pool_max_lifetime=1h":               {Scheme: "mem", PoolMaxLifetime: time.Hour},
		"mem://?handover_limit=3":                   {Scheme: "mem", HandoverLimit: 3},
		"mem://?handover_limit=0":                   {Scheme: "mem", HandoverLimit: -1},
		"mem://?handover_time=1s":                   {Scheme: "mem", HandoverTime: time.Second},
		"mem://?handover_time=0s":                   {Scheme: "mem", HandoverTime: -1},
		"mem://?keep=2s&keep_max=10":                {Scheme: "mem", Keep: 2 * time.Second, KeepMax: 10},
		"mem://?dialect=curator":                    {Scheme: "mem", Dialect: "curator"},
		"mem://?max_waiters=1":                      {Scheme: "mem", MaxWaiters: 1},
		"mem://?max_contenders=2":                   {Scheme: "mem", MaxContenders: 2},
		"mem://?max_names=3":                        {Scheme: "mem", MaxNames: 3},
		"mem://?create_root=false":                  {Scheme: "mem", RequireRoot: true},
		"mem://?create_root=true":                   {Scheme: "mem"},
		"mem://?session_dir=/run/x":                 {Scheme: "mem", SessionDir: "/run/x"},
		"mem://?acl=creator":                        {Scheme: "mem", ACL: "creator"},
		"mem://?acl=sasl:a%40R:cdrwa,ip:10.0.0.1:r": {Scheme: "mem", ACL: "sasl:a@R:cdrwa,ip:10.0.0.1:r"},
		"keyed://h?tls_ca=a&tls_cert=":              {Scheme: "keyed", Hosts: []string{"h"}, DriverSettings: map[string]string{"tls_ca": "a", "tls_cert": ""}},
	} {
		cfg, err := zklock.ParseURL(url)
		if err != nil || !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s: %+v, %v, want %+v", url, cfg, err, want)
		}
		for i := range reflect.TypeFor[zklock.Config]().NumField() {
			if f := reflect.ValueOf(cfg).Field(i); !f.IsZero() {
				reflect.ValueOf(&seen).Elem().Field(i).Set(f)
			}
		}
	}
	seen.User, seen.Password, seen.Connector = "u", driver.NewSecret("p"), memdriver.New().Connector() // DeepEqual cannot compare a Secret; no URL has a Connector
	for i := range reflect.TypeFor[zklock.Config]().NumField() {
		if reflect.ValueOf(seen).Field(i).IsZero() {
			t.Errorf("no URL here sets %s", reflect.TypeFor[zklock.Config]().Field(i).Name)
		}
	}
	cfg, err := zklock.ParseURL("mem://u:p%40@h")
	if err != nil || cfg.User != "u" || cfg.Password.Reveal() != "p@" {
		t.Errorf("user %q, password %q, %v", cfg.User, cfg.Password.Reveal(), err)
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

// typos returns what a hand makes of a word by one mistake: a letter left out, typed twice, wrong, or
// swapped with the next.
func typos(word string) (all []string) {
	for i := range len(word) {
		all = append(all, word[:i]+word[i+1:], word[:i+1]+word[i:], word[:i]+"q"+word[i+1:])
		if i > 0 {
			all = append(all, word[:i-1]+word[i:i+1]+word[i-1:i]+word[i+1:])
		}
	}
	return all
}

// A mistyped key of a URL, or of DriverSettings, is met with the key that was meant.
func TestMistypedKeysAreRecognized(t *testing.T) {
	_, err := zklock.ParseURL("keyed://h?=1")
	if err == nil {
		t.Fatal("the empty key is accepted")
	}
	_, list, _ := strings.Cut(err.Error(), "(known: ")
	known := strings.Split(strings.TrimSuffix(list, ")"), ", ")
	if len(known) < 15 {
		t.Fatalf("the known keys are %q", known)
	}
	tried := 0
	for _, key := range known {
		for _, typo := range typos(key) {
			if typo == "" || slices.Contains(known, typo) {
				continue
			}
			tried++
			want := fmt.Sprintf("zklock: parse: unknown key %q: did you mean %q? (known: ", typo, key)
			if _, err := zklock.ParseURL("keyed://h?" + typo + "=1"); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d typos were tried", tried)
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
