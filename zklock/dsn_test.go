package zklock_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestSecretsStayOutOfErrors(t *testing.T) {
	const canary = "hunter2"
	for _, url := range []string{
		"mem://user:hunter2@h:1:2/r", "mem://user:hunter2@/zookeeper", "mem://user:hunter2@h/r?x=1", "mem://user:hunter2@h/r?session_timeout=hunter2",
		"mem://user:hunter2", "mem://user:hunter2/r", "mem://user:hunter2?x", "user:hunter2@h/r", "mem:///user:hunter2@h", "mem://us/er:hunter2@h",
		"mem://:hunter2@h", "mem://user:%hunter2@h", "mem://user:hun?hunter2@h", "mem://user:x#hunter2@h", "mem://user:hunter2@h,,i", "mem://user:hunter2@[::1",
		"MEM://user:hunter2@h", "mem://user:hunter2@h/r/../x", "mem://user:hunter2@h/%", "mem://u:s:hunter2@h/../", "zk//user:hunter2@h",
		"mem://user:hunter2@a,b/r", "mem://user:p@hunter2@h/../x", "mem://user:hunter2/@h",
	} {
		c, err := zklock.Open(url)
		if err == nil {
			t.Logf("Open accepts %s", url)
			_ = c.Close()
			continue
		}
		if strings.Contains(err.Error(), canary) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), canary) {
			t.Errorf("%s: %v", url, err)
		}
		if !strings.HasPrefix(err.Error(), "zklock: open: ") {
			t.Errorf("the error does not begin with its prefix: %v", err)
		}
	}
}

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
		"mem://?jute_maxbuffer=65536":               {Scheme: "mem", JuteMaxbuffer: 1 << 16},
		"mem://?dialect=curator":                    {Scheme: "mem", Dialect: "curator"},
		"mem://?max_waiters=1":                      {Scheme: "mem", MaxWaiters: 1},
		"mem://?max_contenders=2":                   {Scheme: "mem", MaxContenders: 2},
		"mem://?max_names=3":                        {Scheme: "mem", MaxNames: 3},
		"mem://?deadlock_timeout=3s":                {Scheme: "mem", DeadlockTimeout: 3 * time.Second},
		"mem://?deadlock_timeout=0s":                {Scheme: "mem", DeadlockTimeout: -1},
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
