package zkdriver_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestRegistered(t *testing.T) {
	for _, scheme := range []string{"zk", "zks"} {
		if !slices.Contains(zklock.Drivers(), scheme) {
			t.Errorf("scheme %q is not registered", scheme)
		}
	}
	if keys := (zkdriver.Driver{}).Keys(); !slices.IsSorted(keys) || len(keys) != 9 {
		t.Errorf("keys %q", keys)
	}
}

func TestOpenConnector(t *testing.T) {
	t.Setenv("ZKLOCK_PASSWORD", "")
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pki := newPKI(t, "localhost")
	ca, cert, key := file("ca.pem", string(pki.ca)), file("cert.pem", string(pki.cert)), file("key.pem", string(pki.key))
	password, empty := file("password", "s3cret\n"), file("empty", "\n")
	hosts := func(h ...string) driver.URL { return driver.URL{Scheme: "zk", Hosts: h} }
	user := func(host string) driver.URL {
		return driver.URL{Scheme: "zk", Hosts: []string{host}, User: "al", Password: driver.NewSecret("s3cret")}
	}
	set := func(u driver.URL, pairs ...string) driver.URL {
		u.Params = url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			u.Params.Add(pairs[i], pairs[i+1])
		}
		return u
	}
	tls := func(u driver.URL) driver.URL { u.Scheme = "zks"; return u }
	without := func(u driver.URL) driver.URL { u.Password = driver.Secret{}; return u }
	for _, c := range []struct {
		name string
		u    driver.URL
		want string // part of the error; "" if the URL is valid
	}{
		{"name", hosts("zk1"), ""},
		{"name and port", hosts("zk1:2182", "zk2"), ""},
		{"IPv4", hosts("10.0.0.1:2181"), ""},
		{"IPv6", hosts("[2001:db8::1]:2181", "[::1]"), ""},
		{"IPv6 with a zone", hosts("[fe80::1%25eth0]:2181"), ""},
		{"zone without its escape", hosts("[fe80::1%eth0]"), "behind %25"},
		{"zone of a name", hosts("zk1%25eth0"), "behind %25"},
		{"TLS", tls(hosts("zk1")), ""},
		{"no host", hosts(), "no host"},
		{"empty host", hosts("zk1", ""), "want host"},
		{"only a port", hosts(":2181"), "want host"},
		{"bare IPv6", hosts("2001:db8::1"), "want host"},
		{"open bracket", hosts("[::1"), "want host"},
		{"no port behind colon", hosts("zk1:"), "not a number"},
		{"port 0", hosts("zk1:0"), "not a number"},
		{"port 65536", hosts("zk1:65536"), "not a number"},
		{"named port", hosts("zk1:http"), "not a number"},
		{"space", hosts("zk 1"), "want host"},
		{"scheme", driver.URL{Scheme: "http", Hosts: []string{"zk1"}}, `scheme "http"`},
		{"unknown key", set(hosts("zk1"), "color", "red"), `unknown key "color"`},
		{"mistyped key", set(hosts("zk1"), "tls_sert", "a"), `unknown key "tls_sert": did you mean "tls_cert"? (known: allow_keeper, auth_plaintext, `},
		{"repeated key", set(hosts("zk1"), "auth_plaintext", "true", "auth_plaintext", "true"), "exactly one"},
		{"empty value", set(tls(hosts("zk1")), "tls_ca", ""), "no value"},
		{"no bool", set(user("zk1"), "auth_plaintext", "maybe"), "true or false"},
		{"password to a name", user("zk1"), "unencrypted"},
		{"password to an address", user("10.0.0.1"), "unencrypted"},
		{"password to one of several", driver.URL{Scheme: "zk", Hosts: []string{"localhost", "zk1"}, User: "al", Password: driver.NewSecret("s3cret")}, "zk1:2181 unencrypted"},
		{"password to almost loopback", user("localhost.example.com"), "unencrypted"},
		{"password, plaintext false", set(user("zk1"), "auth_plaintext", "false"), "unencrypted"},
		{"password, plaintext allowed", set(user("zk1"), "auth_plaintext", "true"), ""},
		{"password over TLS", tls(user("zk1")), ""},
		{"password to localhost", user("localhost"), ""},
		{"password to 127.0.0.1", user("127.0.0.1:2181"), ""},
		{"password to ::1", user("[::1]:2181"), ""},
		{"password without user", driver.URL{Scheme: "zk", Hosts: []string{"localhost"}, Password: driver.NewSecret("s3cret")}, "no user"},
		{"user without password", without(user("localhost")), "no password"},
		{"colon mistyped", driver.URL{Scheme: "zk", Hosts: []string{"localhost"}, User: "al;s3cret"}, "no password"},
		{"user with colon", driver.URL{Scheme: "zk", Hosts: []string{"localhost"}, User: "a:b", Password: driver.NewSecret("s3cret")}, "colon"},
		{"password file", set(without(user("localhost")), "password_file", password), ""},
		{"password file in plaintext", set(without(user("zk1")), "password_file", password), "unencrypted"},
		{"password file and password", set(user("localhost"), "password_file", password), "both"},
		{"password file without user", set(hosts("localhost"), "password_file", password), "needs a user"},
		{"password file missing", set(without(user("localhost")), "password_file", dir+"/none"), "no such file"},
		{"password file empty", set(without(user("localhost")), "password_file", empty), "is empty"},
		{"CA", set(tls(hosts("zk1")), "tls_ca", ca), ""},
		{"CA without TLS", set(hosts("zk1"), "tls_ca", ca), "zks://"},
		{"skip verify without TLS", set(hosts("zk1"), "tls_insecure_skip_verify", "true"), "zks://"},
		{"CA missing", set(tls(hosts("zk1")), "tls_ca", dir+"/none"), "no such file"},
		{"CA empty", set(tls(hosts("zk1")), "tls_ca", empty), "no PEM certificate"},
		{"certificate and key", set(tls(hosts("zk1")), "tls_cert", cert, "tls_key", key), ""},
		{"certificate alone", set(tls(hosts("zk1")), "tls_cert", cert), "go together"},
		{"key alone", set(tls(hosts("zk1")), "tls_key", key), "go together"},
		{"certificate that is none", set(tls(hosts("zk1")), "tls_cert", empty, "tls_key", key), "tls_cert"},
		{"server name", set(tls(hosts("zk1")), "tls_server_name", "zk.example.com"), ""},
		{"skip verify", set(tls(hosts("zk1")), "tls_insecure_skip_verify", "true"), ""},
		{"skip verify maybe", set(tls(hosts("zk1")), "tls_insecure_skip_verify", "maybe"), "true or false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := zkdriver.Driver{}.OpenConnector(c.u)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
			if conn != nil {
				if conn.Driver() != (zkdriver.Driver{}) {
					t.Error("the connector belongs to another driver")
				}
				if strings.Contains(fmt.Sprintf("%+v", conn), "s3cret") {
					t.Error("the connector shows the password")
				}
				_ = conn.Close()
			}
		})
	}
}

func TestPasswordFromTheEnvironment(t *testing.T) {
	t.Setenv("ZKLOCK_PASSWORD", "from the environment")
	got := make(chan []byte, 1)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opAuth {
				got <- r.body
			}
			l.succeed(r)
		}
	})
	u := p.url()
	u.User = "al"
	connect(t, u)
	if b := recv(t, got); string(b) != string(digest("al", "from the environment")) {
		t.Errorf("credentials %q", b)
	}
}

// A mistake in any key of the driver gets the key that is meant: a letter twice, in each place.
func TestMistypedKeys(t *testing.T) {
	for _, key := range (zkdriver.Driver{}).Keys() {
		for i := range key {
			typo := key[:i] + key[i:i+1] + key[i:]
			want := fmt.Sprintf("unknown key %q: did you mean %q? (known: ", typo, key)
			if _, err := zklock.ParseURL("zk://zk1:2181/locks?" + typo + "=1"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}
