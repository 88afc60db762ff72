package kerberos

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/zklock/go-zklock/internal/testkit/fips"
)

var noKeys = keytab.New()

// testConfig returns a configuration with additional lines.
func testConfig(t testing.TB, lines string) *configuration {
	t.Helper()
	cfg, err := config.NewFromString("[libdefaults]\ndefault_realm = R\n" + lines + "\n[domain_realm]\n.other.test = OTHER\n")
	if err != nil {
		t.Fatal(err)
	}
	return &configuration{cfg, "krb5.conf"}
}

// dns is a resolver that knows some names and addresses; "down" is a name without an answer.
type dns struct {
	addrs map[string]string // by name
	names map[string]string // by address
}

func (d *dns) LookupHost(_ context.Context, host string) ([]string, error) {
	if a, ok := d.addrs[host]; ok {
		return []string{a}, nil
	}
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	return nil, &net.DNSError{IsNotFound: true}
}

func (d *dns) LookupAddr(_ context.Context, addr string) ([]string, error) {
	switch n, ok := d.names[addr]; {
	case n == "down":
		return nil, errors.New("no answer")
	case ok:
		return []string{n}, nil
	}
	return nil, &net.DNSError{IsNotFound: true}
}

// TestCanonicalNames: the name of a host is that of its address, if the name has the address, too.
func TestCanonicalNames(t *testing.T) {
	d := &dns{
		addrs: map[string]string{"zk1": "10.0.0.1", "zk1.example.test": "10.0.0.1", "alias": "10.0.0.1", "zk2": "10.0.0.2", "zk3": "10.0.0.3", "zk4": "10.0.0.4", "elsewhere": "10.0.0.9"},
		names: map[string]string{"10.0.0.1": "zk1.example.test.", "10.0.0.3": "elsewhere.", "10.0.0.4": "down"},
	}
	for host, want := range map[string]string{
		"zk1": "zk1.example.test", "alias": "zk1.example.test", "10.0.0.1": "zk1.example.test",
		"zk2":     "zk2", // no name
		"zk3":     "zk3", // its name is another host's
		"zk4":     "zk4", // no answer
		"unknown": "unknown",
	} {
		var n names
		got, known := n.canonical(t.Context(), d, host)
		if unanswered := host == "zk4" || host == "unknown"; got != want || known == unanswered {
			t.Errorf("%s: %s, %v, want %s", host, got, known, want)
		}
	}
	// Once a name is known, it outlasts the DNS server.
	n := names{of: map[string]found{"zk4": {name: "zk4.example.test"}, "zk2": {name: "was.example.test"}}}
	if got, known := n.canonical(t.Context(), d, "zk4"); got != "zk4.example.test" || !known {
		t.Errorf("without an answer: %s, %v", got, known)
	}
	if got, known := n.canonical(t.Context(), d, "zk2"); got != "zk2" || !known {
		t.Errorf("the name is gone: %s, %v", got, known)
	}
}

// silentDNS is a resolver that knows addresses, and whose question for a name is not answered.
type silentDNS struct {
	dns
	asked int
}

func (d *silentDNS) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	d.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDNSDoesNotAnswer: the wait for DNS leaves time for the KDC. Later connections do not wait again.
func TestDNSDoesNotAnswer(t *testing.T) {
	for _, known := range []string{"", "zk1.example.test"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as the driver's
			defer cancel()
			var n names
			want := "zk1"
			if known != "" {
				n.of, want = map[string]found{"zk1": {name: known}}, known
			}
			d := &silentDNS{dns: dns{addrs: map[string]string{"zk1": "10.0.0.1"}}}
			for range 3 {
				if got, _ := n.canonical(ctx, d, "zk1"); got != want || ctx.Err() != nil {
					t.Errorf("%q: %s, want %s; the context: %v", known, got, want, ctx.Err())
				}
			}
			if d.asked != 1 {
				t.Errorf("%q: DNS was asked %d times for 3 connections, want 1", known, d.asked)
			}
			time.Sleep(nameLife)
			_, _ = n.canonical(t.Context(), d, "zk1")
			if d.asked != 2 {
				t.Errorf("%q: DNS was asked %d times, want 2: it may answer again", known, d.asked)
			}
		})
	}
}

// TestServerPrincipals: how the options, the host and the configuration make a name.
func TestServerPrincipals(t *testing.T) {
	for _, c := range []struct {
		host, lines, want string
		opts              []Option
	}{
		{"ZK1.Example.Test", "rdns = false", "zookeeper/zk1.example.test@R", nil},
		{"zk1.other.test", "dns_canonicalize_hostname = false", "zookeeper/zk1.other.test@OTHER", nil},
		{"zk1", "", "zookeeper/zk1@R", []Option{WithHostAsGiven()}},
		{"zk1", "", "zk/cluster@R", []Option{WithServerPrincipal("zk/cluster")}},
		{"zk1", "", "zk@X", []Option{WithServerPrincipal("zk@X")}},
		{"zk1", "", "", []Option{WithServerPrincipal("zk//x")}},
		{"zk1", "", "", []Option{WithServerPrincipal("@X")}},
		{"127.0.0.1", "", "zookeeper/localhost@R", nil}, // by /etc/hosts
	} {
		m := Keytab("svc", "file", c.opts...)
		got, _, err := m.principal(t.Context(), testConfig(t, c.lines), c.host)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// TestConfigurations: which types of keys are asked for, and where caches are.
func TestConfigurations(t *testing.T) {
	fips.Skip(t, "SHA-1, which most of these have")
	usual := config.New().LibDefaults.DefaultTktEnctypeIDs
	for lines, want := range map[string]int{
		"": 4,
		"default_tkt_enctypes = aes128-cts-hmac-sha1-96 arcfour-hmac": 1,
		"default_tkt_enctypes = arcfour-hmac":                         4, // RC4 is not asked for
	} {
		if got := aesOf(testConfig(t, lines).LibDefaults.DefaultTktEnctypeIDs, usual); len(got) != want {
			t.Errorf("%q: types %v, want %d", lines, got, want)
		}
	}
	t.Setenv("KRB5CCNAME", "KEYRING:persistent:0")
	for name, want := range map[string]string{"/a": "/a", "FILE:/a": "/a", "/a:b": "/a:b", "": "", "KCM:": "", "relative": "relative"} {
		if got, err := cacheFile(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// TestFallbackTakesTheHostAsGiven: the value in the file of Fedora and Red Hat.
func TestFallbackTakesTheHostAsGiven(t *testing.T) {
	for value, canonical := range map[string]bool{"fallback": false, "FALLBACK\t": false, "false": false, "true": true} {
		file := filepath.Join(t.TempDir(), "krb5.conf")
		if err := os.WriteFile(file, []byte("[libdefaults]\n\tdns_canonicalize_hostname = "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := (&settings{file: file}).load()
		if err != nil || cfg.LibDefaults.DNSCanonicalizeHostname != canonical {
			t.Errorf("%q: %v, %+v", value, err, cfg)
		}
	}
}
