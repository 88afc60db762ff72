package integration_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock"
)

// situation is a row of a table of docs/secured.md: what is wrong, what a job of cron under a lock prints about it, and its
// exit code.
type situation struct {
	what, url string
	env       []string
	says      string
	code      int
}

// kerberizedCommand builds the command with Kerberos.
func kerberizedCommand(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "zklock")
	build := exec.Command("go", "build", "-o", binary, "./cmd/zklock/zklock-kerberos")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// areDocumented runs the command in each situation, and compares what it prints, and its exit code, with the rows of the
// document. It logs the rows that the document should have.
func areDocumented(t *testing.T, all []situation) {
	t.Helper()
	document, err := os.ReadFile("../docs/secured.md")
	if err != nil {
		t.Fatal(err)
	}
	binary := kerberizedCommand(t)
	for _, s := range all {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, binary, "run", "nightly", "--", "true")
		cmd.Env = append(append(os.Environ(), "KRB5_CLIENT_KTNAME=", "KRB5_CONFIG="), s.env...)
		cmd.Env = append(cmd.Env, "ZKLOCK_URL="+s.url, "XDG_RUNTIME_DIR="+t.TempDir())
		out, _ := cmd.CombinedOutput()
		cancel()
		code := cmd.ProcessState.ExitCode()
		t.Logf("%s: %d\n%s", s.what, code, out)
		if code != s.code || !strings.Contains(string(out), s.says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", s.what, code, s.code, s.says, out)
		}
		row := fmt.Sprintf("| %s | `%s` | %d |", s.what, s.says, s.code)
		if !strings.Contains(string(document), row) {
			t.Errorf("docs/secured.md has no row %s", row)
		}
	}
}

// TestDocumentedErrorsOfTLS meets each error of TLS that docs/secured.md lists.
func TestDocumentedErrorsOfTLS(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	files := newPEMFiles(t)
	good := ours.issue(time.Hour, "server", "localhost")
	demands := secureEnsembleWith(t, "need", good, []*authority{ours}, ensemble.Config{})
	asksNone := secureEnsembleWith(t, "none", ours.issue(-time.Minute, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	picky := secureEnsembleWith(t, "none", good, []*authority{ours}, ensemble.Config{Extra: []string{"ssl.enabledProtocols=TLSv1.2", "ssl.ciphersuites=TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"}})
	ca := []string{"tls_ca", files.write("ca.pem", ours.pem)}
	client := func(name string, i issued, more ...string) []string {
		return append(append(more, ca...), "tls_cert", files.write(name+".pem", i.cert), "tls_key", files.write(name+".key", i.key))
	}
	url := func(scheme, hosts string, keys ...string) string {
		return scheme + hosts + "/locks?" + quick(append(keys, "connect_timeout", patience.String())...).Encode()
	}
	named := byName(t, demands.SecureHosts())
	mine := client("mine", ours.issue(time.Hour, "client"))
	forServers := ours.issueFor([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, time.Hour, "server")
	locked := issued{cert: good.cert, key: pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("secret")})}
	areDocumented(t, []situation{
		{"no `tls_ca`, and the authority is your own", url("zks://", named), nil, `set the key "tls_ca" to a file with its certificate`, 78},
		{"`tls_ca` has another authority", url("zks://", named, "tls_ca", files.write("other.pem", other.pem)), nil, `the file of the key "tls_ca" lacks the authority of the server's certificate`, 78},
		{"the URL's host is not in the certificate", url("zks://", demands.SecureHosts(), ca...), nil, `set the key "tls_server_name" to one`, 78},
		{"the server's certificate has expired", url("zks://", byName(t, asksNone.SecureHosts()), ca...), nil, "the server's certificate is valid from", 78},
		{"the server demands a certificate, and the URL has none", url("zks://", named, ca...), nil, `set the keys "tls_cert" and "tls_key"`, 78},
		{"the client's certificate is of an authority that the servers do not trust", url("zks://", named, client("strange", other.issue(time.Hour, "client"))...), nil, `the server refuses the client certificate of the key "tls_cert", which "CN=other" has issued`, 78},
		{"the client's certificate has expired", url("zks://", named, client("late", ours.issue(-time.Minute, "client"))...), nil, `the server refuses the client certificate of the key "tls_cert", which is valid from`, 78},
		{"the client's certificate is one for servers only", url("zks://", named, client("server", forServers)...), nil, "whose extended key usage lacks clientAuth", 78},
		{"the file of `tls_key` has a passphrase", url("zks://", named, client("locked", locked)...), nil, "the file is encrypted", 78},
		{"`tls_cert`, and the servers have `ssl.clientAuth=none`", url("zks://", byName(t, asksNone.SecureHosts()), append(mine, "tls_insecure_skip_verify", "true")...), nil, "the server has not asked for a client certificate", 78},
		{"no cipher suite in common", url("zks://", byName(t, picky.SecureHosts()), ca...), nil, "no TLS version or no cipher suite in common", 78},
		{"`zk://` to a port of TLS", url("zk://", demands.SecureHosts()), nil, "it expects TLS: use zks:// instead of zk://", 78},
		{"`zks://` to a plain port", url("zks://", byName(t, demands.Hosts()), ca...), nil, "use zk:// instead of zks://", 78},
		{"`tls_cert` without `tls_key`", url("zks://", named, "tls_cert", files.write("x.pem", good.cert)), nil, "set both or neither", 78},
	})
}

// TestDocumentedExitCodes meets each cause of the exit codes 69, 77 and 78 that docs/secured.md lists for identities and rights.
func TestDocumentedExitCodes(t *testing.T) {
	t.Parallel()
	id, k := kerberosIdentity(t, kdc.Config{})
	byDigest, byKerberos, plain := digestIdentity().start(t, 1), id.start(t, 1), sharedEnsemble(t)
	old := k.Keytab("old")
	again := filepath.Join(t.TempDir(), "old.keytab")
	text, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(again, text, 0o600); err != nil {
		t.Fatal(err)
	}
	k.Admin("cpw", "-randkey", "old")
	keytab := func(config, file string) []string {
		return []string{"KRB5_CONFIG=" + config, "KRB5_CLIENT_KTNAME=" + file}
	}
	here, gone := k.ConfigFile(), filepath.Join(t.TempDir(), "none")
	noKDC := filepath.Join(t.TempDir(), "krb5.conf")
	config := fmt.Sprintf("[libdefaults]\ndefault_realm = %[1]s\nrdns = false\n[realms]\n%[1]s = {\nkdc = 127.0.0.1:%d\n}\n", kdc.Realm, ensemble.FreePort(t))
	if err := os.WriteFile(noKDC, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	other := func(line string) string {
		file := filepath.Join(t.TempDir(), "other.conf")
		if err := os.WriteFile(file, []byte("[libdefaults]\nrdns = false\ndns_lookup_kdc = false\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	url := func(user, hosts, root string, keys ...string) string {
		return "zk://" + user + hosts + root + "?" + quick(append([]string{"connect_timeout", "5s"}, keys...)...).Encode()
	}
	mine := k.Keytab("svc2")
	root := rootOf(t)
	owner := dial(t, plain.Hosts(), quick(), zklock.WithLogger(searchedLog()))
	if err := owner.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	raw := dialRaw(t, plain.Hosts(), 10*time.Second)
	if _, err := raw.Create(root+"-owned", nil, 0, zk.DigestACL(zk.PermAll, "owner", "secret")); err != nil {
		t.Fatal(err)
	}
	areDocumented(t, []situation{
		{"no server can be reached", url("", fmt.Sprintf("127.0.0.1:%d", ensemble.FreePort(t)), root), nil, "connection refused", 69},
		{"no KDC answers, and there is no ticket", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(noKDC, old), "no KDC of realm", 69},
		{"the root gives this client no rights", url("", plain.Hosts(), root+"-owned"), nil, "no READ on", 77},
		{"a user without SASL has another password than the one that made the root", url("owner:wrong@", plain.Hosts(), root+"-owned"), nil, "or the password is wrong", 77},
		{"`acl=creator`, and the client has no identity", url("", plain.Hosts(), root+"-creator", "acl", "creator"), nil, "acl=creator needs an identity", 77},
		{"`acl` names an identity of Kerberos without its realm", url("svc2@", byKerberos.Hosts(), root+"-realm", "sasl", "kerberos", "acl", "sasl:svc2:cdrwa"), keytab(here, mine), "without a realm", 77},
		{"the servers demand SASL, and the URL has none", url("", byDigest.Hosts(), root), nil, "the servers demand another authentication", 78},
		{"DIGEST-MD5: another password, or an unknown user", url(canaryUser+":wrong@", byDigest.Hosts(), root, "sasl", "digest-md5"), nil, "the user is unknown there, or the password is wrong", 78},
		{"the servers have no SASL", url(canaryUser+":wrong@", plain.Hosts(), root, "sasl", "digest-md5"), nil, "the server has no SASL", 78},
		{"Kerberos: an old keytab", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(here, again), "export the keytab again", 78},
		{"Kerberos: a keytab of another principal", url("ghost@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(here, old), "the keytab has no key of", 78},
		{"Kerberos: no keytab", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(here, gone), "no such file", 78},
		{"Kerberos: no krb5.conf", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(gone, old), "KRB5_CONFIG names no file that can be found", 78},
		{"Kerberos: a krb5.conf without the realm", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(other("default_realm = "+kdc.Realm), old), "other.conf has no KDC of realm", 78},
		{"Kerberos: a krb5.conf without default_realm", url("old@", byKerberos.Hosts(), root, "sasl", "kerberos"), keytab(other(""), old), "other.conf has no default_realm", 78},
	})
}
