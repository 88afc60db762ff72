package zklock

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/znode"
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
		var cfg clientSettings
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
		znode.CheckPath(t, cfg.Place.Root)
		if cfg.Place.LossDelay > cfg.Place.SessionTimeout/2 || cfg.Place.SessionTimeout-cfg.Place.LossDelay < 3*cfg.Place.TickTime {
			t.Fatalf("loss_delay=%v is too long for session_timeout=%v and tick_time=%v", cfg.Place.LossDelay, cfg.Place.SessionTimeout, cfg.Place.TickTime)
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
