package kerberos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// server is a principal that tests have tickets for.
const server = "zookeeper/localhost"

// start starts a KDC with the server's principal.
func start(t *testing.T, c kdc.Config) *kdc.KDC {
	t.Helper()
	kdc.Require(t)
	k := kdc.Start(t, c)
	k.Add(server)
	return k
}

// within returns a context that ends with the test, or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

const patience = 30 * time.Second

// begins checks that a mechanism has a ticket for the server.
func begins(t *testing.T, m zkdriver.Mechanism) {
	t.Helper()
	x, err := m.Start(within(t, patience), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if token, done, err := x.Step(nil); len(token) == 0 || done || err != nil {
		t.Fatalf("the first token: %x, %v, %v", token, done, err)
	}
}

// refuses checks that a mechanism has no ticket for the server, and will have none: without a
// secret, and with what to do.
func refuses(t *testing.T, m zkdriver.Mechanism, says ...string) {
	t.Helper()
	_, err := m.Start(within(t, patience), "localhost")
	if !errors.Is(err, driver.ErrAuthFailed) {
		t.Fatalf("%v, want an error that matches ErrAuthFailed", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v, want an error with %q", err, s)
		}
	}
}

// granted returns how many tickets the KDC has granted for a principal.
func granted(k *kdc.KDC, principal string) (n int) {
	for line := range strings.Lines(k.Log()) {
		if strings.Contains(line, "ISSUE") && strings.Contains(line, "for "+principal+"@") {
			n++
		}
	}
	return n
}

// TestTypesOfKeys: each type of AES works, with a keytab and a cache. RC4 is refused by name.
func TestTypesOfKeys(t *testing.T) {
	fips.Skip(t, "SHA-1, which some of these have")
	t.Parallel()
	for _, types := range []string{"aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha256-128"} {
		k := start(t, kdc.Config{Types: types + ":normal"})
		keytab := k.Keytab("svc/host")
		here := kerberos.WithConfigFile(k.ConfigFile())
		begins(t, kerberos.Keytab("svc/host", keytab, here))
		begins(t, kerberos.Keytab("svc/host@"+kdc.Realm, keytab, here))
		begins(t, kerberos.Keytab("", keytab, here))
		begins(t, kerberos.Cache(k.Cache("svc/host", keytab), here))
	}
	k := start(t, kdc.Config{Types: "arcfour-hmac:normal", Lines: []string{"allow_weak_crypto = true", "allow_rc4 = true", "permitted_enctypes = arcfour-hmac"}})
	keytab := k.Keytab("svc")
	here := kerberos.WithConfigFile(k.ConfigFile())
	refuses(t, kerberos.Keytab("svc", keytab, here), "AES", "kadmin")
	refuses(t, kerberos.Cache(k.Cache("svc", keytab), here), "23 (RC4)", "kadmin")
}

// TestTicketsAreFetchedOnce: a mechanism asks the KDC once for each server.
func TestTicketsAreFetchedOnce(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	m := kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(k.ConfigFile()))
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			_, err := m.Start(within(t, patience), "localhost")
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if a, b := granted(k, "krbtgt/"+kdc.Realm), granted(k, server); a != 1 || b != 1 {
		t.Errorf("the KDC has granted %d and %d tickets, want 1 and 1:\n%s", a, b, k.Log())
	}
}

// TestRefusals: what a KDC refuses, with what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	here := kerberos.WithConfigFile(k.ConfigFile())
	keytab := k.Keytab("svc")
	refuses(t, kerberos.Keytab("svc", keytab, here, kerberos.WithServerPrincipal("zookeeper/nowhere")), "zookeeper/nowhere@"+kdc.Realm, "does not know this principal")
	refuses(t, kerberos.Keytab("svc@ELSEWHERE", keytab, here), "no key of svc@ELSEWHERE, only of svc@"+kdc.Realm)
	refuses(t, kerberos.Keytab("svc", keytab, here, kerberos.WithServerPrincipal("zookeeper/x@ELSEWHERE")), "krbtgt/ELSEWHERE@"+kdc.Realm)

	old := filepath.Join(t.TempDir(), "old.keytab")
	text, err := os.ReadFile(keytab)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, text, 0o600); err != nil {
		t.Fatal(err)
	}
	k.Admin("modprinc", "+requires_preauth", "svc")
	begins(t, kerberos.Keytab("svc", old, here))
	k.Admin("cpw", "-randkey", "svc")
	refuses(t, kerberos.Keytab("svc", old, here), "export the keytab again")
	k.Admin("modprinc", "-requires_preauth", "svc")
	refuses(t, kerberos.Keytab("svc", old, here), "export the keytab again")
	if _, err := kerberos.Keytab("svc", old, here).Start(within(t, patience), "localhost"); err == nil || strings.Contains(err.Error(), "decrypt") {
		t.Errorf("%v, want what to do, and not how the key failed", err)
	}
	k.Admin("modprinc", "-allow_tix", "svc")
	refuses(t, kerberos.Keytab("svc", old, here), "locked")
	k.Admin("delprinc", "-force", "svc")
	refuses(t, kerberos.Keytab("svc", old, here), "the KDC does not know this principal")

	file := filepath.Join(t.TempDir(), "its.conf")
	lacking := func(lines string) kerberos.Option {
		if err := os.WriteFile(file, []byte("[libdefaults]\ndns_lookup_kdc = false\nrdns = false\n"+lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return kerberos.WithConfigFile(file)
	}
	refuses(t, kerberos.Keytab("svc", keytab, lacking("default_realm = "+kdc.Realm)), file+" has no KDC of realm "+kdc.Realm)
	refuses(t, kerberos.Keytab("svc", keytab, lacking("")), file+" has no default_realm")
	refuses(t, kerberos.Keytab("svc", keytab, lacking("default_realm = ELSEWHERE")), "default_realm in "+file)

	none := filepath.Join(t.TempDir(), "none")
	for _, m := range []*kerberos.Mechanism{
		kerberos.Keytab("svc", none, here), kerberos.Cache(none, here), kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(none)),
	} {
		if _, err := m.Start(within(t, patience), "localhost"); !errors.Is(err, os.ErrNotExist) || errors.Is(err, driver.ErrAuthFailed) {
			t.Errorf("%v, want ErrNotExist", err)
		}
	}
}

// TestOneReasonForAllServers: what is wrong with the client or its KDCs is the same text for each server, so that it is shown once.
func TestOneReasonForAllServers(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	resets, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer resets.Close()
	go func() {
		for {
			c, err := resets.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1)) // the rest is unread: the client's read is reset
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}()
	file := filepath.Join(t.TempDir(), "krb5.conf")
	config := fmt.Sprintf("[libdefaults]\ndefault_realm = %[1]s\nrdns = false\n[realms]\n%[1]s = {\nkdc = 127.0.0.1:1\nkdc = %s\nkdc = 127.0.0.1:2\n}\n", kdc.Realm, resets.Addr())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare.conf")
	if err := os.WriteFile(bare, []byte("[libdefaults]\nrdns = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := kerberos.WithConfigFile(file)
	for what, m := range map[string]*kerberos.Mechanism{
		"a keytab without the key":  kerberos.Keytab("ghost", keytab, kerberos.WithConfigFile(k.ConfigFile())),
		"no realm":                  kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(bare)),
		"no KDC for a first ticket": kerberos.Keytab("svc", keytab, gone),
		"no KDC for a further one":  kerberos.Cache(k.Cache("svc", keytab), gone),
	} {
		reasons := make(map[string]bool)
		for i := range 20 { // the KDCs are asked in any order
			_, err := m.Start(within(t, patience), fmt.Sprintf("zk%d.test", i))
			if err == nil {
				t.Fatalf("%s: no error", what)
			}
			reasons[err.Error()] = true
		}
		if len(reasons) != 1 {
			t.Errorf("%s: %d texts, want one: %q", what, len(reasons), slices.Collect(maps.Keys(reasons)))
		}
	}
}

// TestClockSkew: the KDC's clock is wrong.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	library, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // the pattern is well-formed
	if len(library) == 0 {
		t.Skip("no libfaketime found: install faketime")
	}
	k := start(t, kdc.Config{Env: []string{"LD_PRELOAD=" + library[0], "FAKETIME=+20m"}})
	keytab := k.Keytab("svc")
	refuses(t, kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(k.ConfigFile())), "clocks")
	k.Admin("modprinc", "+requires_preauth", "svc")
	refuses(t, kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(k.ConfigFile())), "clocks")
}

// TestKeytabWithOldKeys: a keytab has several keys of a principal, perhaps of one second. The one with
// the highest version counts.
func TestKeytabWithOldKeys(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	k.Admin("modprinc", "+requires_preauth", "svc")
	for range 3 {
		k.Admin("ktadd", "-k", keytab, "svc")
	}
	begins(t, kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(k.ConfigFile())))
}

// TestStockConfiguration: what the file of Fedora and Red Hat sets.
func TestStockConfiguration(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	text, err := os.ReadFile(k.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "krb5.conf")
	stock := strings.Replace("includedir /etc/krb5.conf.d/\n"+string(text), "[libdefaults]", "[libdefaults]\n    dns_canonicalize_hostname = fallback\n    qualify_shortname = \"\"", 1)
	if err := os.WriteFile(file, []byte(stock), 0o600); err != nil {
		t.Fatal(err)
	}
	begins(t, kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(file)))
}

// TestExpiredCache: the tickets of a cache have expired, and are replaced.
func TestExpiredCache(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	m := kerberos.Cache(k.Cache("svc", keytab, "-l", "1s"), kerberos.WithConfigFile(k.ConfigFile()))
	time.Sleep(1100 * time.Millisecond) // a ticket's life
	refuses(t, m, "have expired", "run kinit")
	k.Cache("svc", keytab)
	begins(t, m)
}

// TestEnvironment: the URL's key chooses the mechanism, and the environment has the identity.
func TestEnvironment(t *testing.T) {
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	k.Keytab("other")
	t.Setenv("KRB5_CONFIG", "/nonexistent:"+k.ConfigFile())
	t.Setenv("KRB5CCNAME", "FILE:"+k.Cache("svc", keytab))
	t.Setenv("KRB5_CLIENT_KTNAME", "")
	t.Setenv("ZKLOCK_PASSWORD", "")
	open := func(user, password string) error {
		c, err := zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: "zk", Hosts: []string{"zk1"}, User: user, Password: driver.NewSecret(password), Params: map[string][]string{"sasl": {"kerberos"}}})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	wants := func(what string, err error, text string) {
		t.Helper()
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	wants("a cache", open("", ""), "")
	wants("the cache's user", open("svc", ""), "")
	wants("the cache's user in full", open("svc@"+kdc.Realm, ""), "")
	wants("another user", open("other", ""), "the credential cache is of svc@")
	wants("a password", open("svc", "s3cret"), "no password")
	t.Setenv("KRB5CCNAME", "FILE:/nonexistent")
	wants("no cache", open("", ""), "run kinit")
	t.Setenv("KRB5_CLIENT_KTNAME", "FILE:"+keytab)
	wants("a keytab", open("svc", ""), "")
	t.Setenv("KRB5_CLIENT_KTNAME", "/nonexistent")
	wants("no keytab", open("svc", ""), "no such file")
	t.Setenv("KRB5_CONFIG", "/nonexistent")
	t.Setenv("KRB5_CLIENT_KTNAME", "FILE:"+keytab)
	wants("no configuration", open("svc", ""), "KRB5_CONFIG names no file that can be found: /nonexistent")
	if _, err := kerberos.Keytab("svc", keytab).Start(within(t, patience), "localhost"); err == nil {
		t.Error("there is no configuration, and no error")
	}
}

// TestKDCThatHangs: the first KDC accepts connections and does not answer. A mechanism without a
// ticket asks the next one. Its caller's context ends the wait.
func TestKDCThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	file := filepath.Join(t.TempDir(), "krb5.conf")
	write := func(kdcs ...string) {
		text := "[libdefaults]\ndefault_realm = " + kdc.Realm + "\n[realms]\n" + kdc.Realm + " = {\n"
		for _, addr := range kdcs {
			text += "kdc = " + addr + "\n"
		}
		if err := os.WriteFile(file, []byte(text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(file))
	write(l.Addr().String())
	if _, err := m.Start(within(t, 200*time.Millisecond), "localhost"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrAuthFailed) {
		t.Errorf("%v, want DeadlineExceeded", err)
	}
	write(l.Addr().String(), k.Addr())
	begins(t, m)
	write()
	refuses(t, kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(file)), "has no KDC of realm")
}

// TestOnlySHA2UnderFIPS: with GODEBUG=fips140=only, SHA-1 panics: keys of SHA-2 are used, and others refused. The mode is
// that of a process, so the test starts itself.
func TestOnlySHA2UnderFIPS(t *testing.T) {
	if !fips.Only() {
		kdc.Require(t)
		child := exec.Command(os.Args[0], "-test.run=^TestOnlySHA2UnderFIPS$|^TestExchange$")
		child.Env = append(os.Environ(), "GODEBUG="+fips.Mode)
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	k := start(t, kdc.Config{})
	begins(t, kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(k.ConfigFile())))
	k = start(t, kdc.Config{Types: "aes256-cts-hmac-sha1-96:normal"})
	refuses(t, kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(k.ConfigFile())), "GODEBUG=fips140=only allows keys of SHA-2 only")
}
