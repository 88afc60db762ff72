package zklock

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// FuzzURL: whatever stands before an "@" may be a password, so no error shows it. A URL that is
// accepted has the parts that it should have.
func FuzzURL(f *testing.F) {
	f.Add("zk://user:", "h1:2181,[::1]:2182/shop/locks?session_timeout=10s")
	f.Add("zks://u:s%40", "h/r?loss_delay=1s&tick_time=2s&acl=open")
	f.Add("mem://a,b:", "c#x")
	f.Add("zk://h?x=", "&y")
	f.Fuzz(func(t *testing.T, before, after string) {
		const canary = "hunter!2" // neither the name of a host nor of a key
		u, err := parseURL(before + canary + "@" + after)
		settings := Config{User: u.User, Root: u.Root}
		if err == nil {
			err = settings.setParams(u.Params, []string{"password_file", "tls_ca"})
		}
		var cfg config
		if err == nil {
			cfg, err = settings.complete()
		}
		if err != nil {
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, canary) {
				t.Fatalf("the error shows what may be a password: %s", text)
			}
			return
		}
		if !strings.Contains(u.User+u.Password.Reveal(), canary) || u.User == "" {
			t.Fatalf("the user and the password are %q and %q", u.User, u.Password.Reveal())
		}
		if strings.Contains(u.Password.Reveal(), canary) && !strings.Contains(u.User, canary) && strings.Contains(fmt.Sprintf("%+v %#v", u, u), canary) {
			t.Fatalf("the URL shows its password")
		}
		for _, h := range u.Hosts {
			if h == "" || strings.ContainsAny(h, "@/?#,") {
				t.Fatalf("host %q", h)
			}
		}
		serverAccepts(t, cfg.Root)
		if cfg.LossDelay > cfg.SessionTimeout/2 || cfg.SessionTimeout-cfg.LossDelay < 3*cfg.TickTime {
			t.Fatalf("loss_delay=%v is too long for session_timeout=%v and tick_time=%v", cfg.LossDelay, cfg.SessionTimeout, cfg.TickTime)
		}
	})
}

// FuzzCredentials: a user and a password that were escaped in a URL are parsed unchanged.
func FuzzCredentials(f *testing.F) {
	f.Add("app", "p@ss:w/r?d#%,")
	f.Fuzz(func(t *testing.T, user, password string) {
		u, err := parseURL("zk://" + url.PathEscape(user) + ":" + strings.ReplaceAll(url.PathEscape(password), ",", "%2C") + "@h:2181/r")
		if user == "" || strings.ContainsAny(user, ":,") {
			return // digest authentication knows no empty user and no colon in it; a comma must be escaped
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.User != user || u.Password.Reveal() != password {
			t.Fatalf("%q and %q became %q and %q", user, password, u.User, u.Password.Reveal())
		}
	})
}

// FuzzName: a name that is accepted has a path that ZooKeeper accepts. It is below the
// root, no other name has it, and no part of it passes for a queue node of any dialect.
func FuzzName(f *testing.F) {
	f.Add("orders/42", "orders%2F42")
	f.Add("a/../b", "..")
	f.Add("_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", "x/lock-0000000003")
	f.Add("\ue000", "\U0001f600")
	f.Fuzz(func(t *testing.T, a, b string) {
		const root = "/shop/locks"
		for _, d := range queue.Dialects {
			c := &Client{turnstiles: turnstiles{cfg: config{Settings: place.Settings{Settings: session.Settings{Root: root}, Dialect: d}}}}
			paths := map[string]string{}
			for _, name := range []string{a, b} {
				err := d.CheckName(name)
				if utf8.ValidString(name) == false && err == nil || len(name) > queue.MaxName && err == nil {
					t.Fatalf("%q is accepted in dialect %s", name, d.Name)
				}
				if err != nil {
					if !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < 0x20 || r == 0x7f }) {
						t.Fatalf("the error shows bytes of the name that have to be escaped: %q", err)
					}
					continue
				}
				path := c.path(name)
				below, ok := strings.CutPrefix(path, root+"/")
				if !ok || below == "" || !d.Literal() && strings.Contains(below, "/") {
					t.Fatalf("%q has the path %q in dialect %s", name, path, d.Name)
				}
				serverAccepts(t, path)
				if len(path) > len(root)+1+3*queue.MaxName {
					t.Fatalf("%q has a path of %d bytes", name, len(path))
				}
				for segment := range strings.SplitSeq(below, "/") {
					if _, other, ok := d.Parse(segment); (ok || other != nil) && d.Literal() {
						t.Fatalf("%q passes for a queue node in dialect %s", name, d.Name)
					}
				}
				if back, err := url.PathUnescape(below); !d.Literal() && (err != nil || back != name) {
					t.Fatalf("%q became %q, which decodes to %q, %v", name, below, back, err)
				}
				if other, taken := paths[path]; taken && other != name {
					t.Fatalf("%q and %q have the same path, %q, in dialect %s", name, other, path, d.Name)
				}
				paths[path] = name
			}
		}
	})
}

// serverAccepts fails the test for a path that ZooKeeper's PathUtils refuses. Java checks
// UTF-16 units, so it refuses every character that needs a surrogate pair.
func serverAccepts(t *testing.T, path string) {
	t.Helper()
	if path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' || !utf8.ValidString(path) {
		t.Fatalf("path %q", path)
	}
	for _, c := range utf16.Encode([]rune(path)) {
		if c <= 0x1f || 0x7f <= c && c <= 0x9f || 0xd800 <= c && c <= 0xf8ff || 0xfff0 <= c {
			t.Fatalf("path %q has the character %#x", path, c)
		}
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			t.Fatalf("path %q has the segment %q", path, segment)
		}
	}
}
