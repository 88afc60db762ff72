package integration_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// codeSASL is the code of the requests of a SASL exchange, and codeWatches that of requests that
// set watches again.
const (
	codeSASL    = 102
	codeWatches = 101
)

// requiresSASL makes servers refuse all requests of a client before it has authenticated.
const requiresSASL = "sessionRequireClientSASLAuth=true"

// identity is how clients authenticate by SASL, and how servers check that.
type identity struct {
	name   string // the client's, as the servers see it
	config ensemble.Config
	keys   []string        // of the URL
	opts   []zklock.Option // of the client
	as     driver.URL      // the same for a driver
}

// digestIdentity is a user of the mechanism DIGEST-MD5.
func digestIdentity() identity {
	return identity{
		name:   canaryUser,
		config: ensemble.Config{JAAS: jaasDigest},
		keys:   []string{"sasl", "digest-md5"},
		as: driver.URL{Scheme: "zk", User: canaryUser, Password: driver.NewSecret(canary),
			Params: url.Values{"sasl": {"digest-md5"}}},
	}
}

// jaasDigest is the JAAS file of servers whose clients authenticate by DIGEST-MD5.
const jaasDigest = `Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required
	user_` + canaryUser + `="` + canary + `"
	user_zoë="grün5€";
};
`

// serverPrincipal is the servers' principal: all of them are at 127.0.0.1.
const serverPrincipal = "zookeeper/localhost"

// kerberosIdentity is a principal of a KDC that runs until the test is over.
func kerberosIdentity(t *testing.T, c kdc.Config) (identity, *kdc.KDC) {
	t.Helper()
	kdc.Require(t)
	k := kdc.Start(t, c)
	config := ensemble.Config{JAAS: kdc.JAAS(serverPrincipal, k.Keytab(serverPrincipal)), JavaOptions: k.JavaOptions()}
	m := kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(k.ConfigFile()))
	return identity{
		name: "svc@" + kdc.Realm, config: config,
		opts: []zklock.Option{zkdriver.WithSASL(m)},
		as:   driver.URL{Scheme: "zk", Options: []any{m}},
	}, k
}

// identities are one of each mechanism.
func identities(t *testing.T) map[string]identity {
	t.Helper()
	k, _ := kerberosIdentity(t, kdc.Config{})
	return map[string]identity{"digest-md5": digestIdentity(), "kerberos": k}
}

// servers are one server for each mechanism. That of DIGEST-MD5 demands SASL.
type saslServers struct {
	digest, krb          identity
	byDigest, byKerberos *ensemble.Ensemble
	kdc                  *kdc.KDC
}

// each calls f for each mechanism.
func (s *saslServers) each(t *testing.T, f func(t *testing.T, id identity, e *ensemble.Ensemble)) {
	t.Run("digest-md5", func(t *testing.T) { t.Parallel(); f(t, s.digest, s.byDigest) })
	t.Run("kerberos", func(t *testing.T) { t.Parallel(); f(t, s.krb, s.byKerberos) })
}

// TestSASL has the tests that one server for each mechanism is enough for.
func TestSASL(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	s := &saslServers{digest: digestIdentity()}
	s.krb, s.kdc = kerberosIdentity(t, kdc.Config{})
	s.byDigest, s.byKerberos = s.digest.start(t, 1), ensemble.Start(t, s.krb.config)
	for name, test := range map[string]func(*testing.T, *saslServers){
		"kinds of locks":            testSASLKindsOfLocks,
		"first on every connection": testSASLComesFirst,
		"identities":                testSASLIdentities,
		"refusals":                  testSASLRefusals,
		"characters":                testSASLCharacters,
		"a refusal keeps no locks":  testRefusedSASLKeepsNoLocks,
		"sessions of the dead":      testSASLClosesSessions,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, s) })
	}
}

// start starts servers that demand SASL.
func (id identity) start(t *testing.T, servers int) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	config := id.config
	config.Servers, config.Extra = servers, append(config.Extra, requiresSASL)
	e := ensemble.Start(t, config)
	return e
}

// dial opens a client that owns the znodes that it creates.
func (id identity) dial(t testing.TB, hosts string, kv []string, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	params := quick(append(append([]string{"acl", "creator", "connect_timeout", patience.String()}, id.keys...), kv...)...)
	return dial(t, hosts, params, append(opts, id.opts...)...)
}

// TestSASLConformance checks zkdriver against the contract of package driver on servers that demand
// SASL: one and three, with TLS and without.
func TestSASLConformance(t *testing.T) {
	t.Parallel()
	long.Test(t, "the driver's contract on six ensembles")
	for name, id := range identities(t) {
		for _, servers := range []int{1, 3} {
			t.Run(name+"/"+[]string{"", "standalone", "", "ensemble"}[servers], func(t *testing.T) {
				t.Parallel()
				ensemble.Require(t)
				config := id.config
				config.Servers, config.Extra = servers, append(config.Extra, requiresSASL)
				testConformance(t, config, id.as)
			})
		}
		t.Run(name+"/TLS", func(t *testing.T) {
			t.Parallel()
			ensemble.Require(t)
			ours, files := newAuthority(t, "ours"), newPEMFiles(t)
			server := ours.issue(time.Hour, "server", "localhost")
			config := id.config
			config.Extra = append(config.Extra, requiresSASL)
			config.TLS = &ensemble.TLS{KeyStore: files.write("server.pem", server.key, server.cert), TrustStore: files.write("clients.pem", ours.pem)}
			as := id.as
			as.Scheme, as.Params = "zks", url.Values{"tls_ca": {files.write("ca.pem", ours.pem)}, "tls_server_name": {"localhost"}}
			for key, values := range id.as.Params {
				as.Params[key] = values
			}
			testConformance(t, config, as)
		})
	}
}

// testSASLKindsOfLocks runs the plays of all kinds of locks.
func testSASLKindsOfLocks(t *testing.T, s *saslServers) {
	engines := make(map[string]opener)
	for name, one := range map[string]struct {
		identity
		*ensemble.Ensemble
	}{"digest-md5": {s.digest, s.byDigest}, "kerberos": {s.krb, s.byKerberos}} {
		engines[name] = func(t *testing.T, _ string, opts ...zklock.Option) *zklock.Client {
			return one.dial(t, one.Hosts(), nil, opts...)
		}
	}
	testKindsOfLocks(t, engines)
}

// testSASLComesFirst cuts a client's connections at random moments of the exchange.
// On each connection the exchange comes before any request. No request is refused, and no lock is
// lost.
func testSASLComesFirst(t *testing.T, servers *saslServers) {
	servers.each(t, func(t *testing.T, id identity, e *ensemble.Ensemble) {
		const kills = 20
		w := newWiretap(t, e.Hosts())
		hooks, refused := refusals()
		c := id.dial(t, w.Addr(), []string{"pool_max_sessions", "1"}, zklock.WithHooks(hooks))
		cutUnderLoad(t, c, w, kills)
		used := 0
		for i, ops := range w.asked(0) {
			for j, op := range ops {
				exchange := 2 // tokens of DIGEST-MD5
				if id.keys == nil {
					exchange = 3 // of Kerberos
				}
				switch {
				case (op == codeSASL) != (j < exchange), op == codeWatches && ops[j-1] != codeSASL && ops[j-1] != codeAuth && ops[j-1] != codeWatches:
					t.Errorf("connection %d: request %d is operation %d; all: %v", i, j, op, ops)
				case j == exchange:
					used++
				}
			}
		}
		if used < kills {
			t.Errorf("%d connections were used, want at least %d", used, kills)
		}
		if n := refused.Load(); n != 0 {
			t.Errorf("%d operations were refused, want none", n)
		}
		if st := c.Stats(); st.SessionsOpened != 1 {
			t.Errorf("%d sessions were opened, want 1", st.SessionsOpened)
		}
	})
}

// testSASLIdentities: the identity that servers see is the one that access lists name. Access
// lists of SASL and of the scheme digest can be mixed, and a client on none of them is refused.
func testSASLIdentities(t *testing.T, s *saslServers) {
	id, e := s.krb, s.byKerberos                       // which lets others in, too
	sum := sha1.Sum([]byte(canaryUser + ":" + canary)) // as access lists have it
	list := "sasl:" + id.name + ":cdrwa,digest:" + canaryUser + ":" + base64.StdEncoding.EncodeToString(sum[:]) + ":r"
	c := id.dial(t, e.Hosts(), []string{"acl", list})
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, c.Mutex("x"))
	byPassword := dial(t, e.Hosts(), quick("acl", "creator"))
	if all, err := byPassword.Contenders(within(t), "x"); err != nil || len(all) != 1 || !all[0].Held {
		t.Errorf("the reader sees %v, %v", all, err)
	}
	_, err := byPassword.Mutex("y").Acquire(within(t))
	if !errors.Is(err, zklock.ErrNoAuth) {
		t.Errorf("the reader acquires: %v, want ErrNoAuth", err)
	}
	stranger, err := zklock.Open("zk://"+e.Hosts()+rootOf(t)+"?"+quick().Encode(), zklock.WithLogger(searchedLog()))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Ping(within(t)); !errors.Is(err, zklock.ErrNoAuth) {
		t.Errorf("a stranger: %v, want ErrNoAuth", err)
	}
	release(t, held)
	other := id.dial(t, e.Hosts(), []string{"acl", "sasl:another:cdrwa"})
	_, err = other.Mutex("y").Acquire(within(t))
	if !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "authenticated by SASL") {
		t.Errorf("znodes of another identity: %v, want ErrNoAuth that names SASL", err)
	}
	hint := "does not name its own identity"
	if strings.Contains(id.name, "@") {
		hint = "names sasl:another, without a realm"
	}
	if err != nil && (!strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "not authenticated")) {
		t.Errorf("%v, want %q, and nothing that the client is not authenticated", err, hint)
	}
}

// testSASLRefusals: each refusal says what is wrong and what to do, and comes at once, although
// the client would wait long.
func testSASLRefusals(t *testing.T, s *saslServers) {
	digest, krb, k := s.digest, s.krb, s.kdc
	required, byKerberos, plain := s.byDigest, s.byKerberos, sharedEnsemble(t)
	k.Add("zookeeper/elsewhere") // no server has its key
	with := func(m zkdriver.Mechanism) []zklock.Option { return []zklock.Option{zkdriver.WithSASL(m)} }
	here := kerberos.WithConfigFile(k.ConfigFile())
	keytab := k.Export("svc")
	none := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		user, hosts string
		kv          []string
		opts        []zklock.Option
		says        string
	}{
		"wrong password":                      {canaryUser + ":wrong", required.Hosts(), digest.keys, nil, "password is wrong"},
		"unknown user":                        {"unknown:wrong", required.Hosts(), digest.keys, nil, "user is unknown"},
		"no SASL at the server":               {canaryUser + ":" + canary, plain.Hosts(), digest.keys, nil, "has no SASL"},
		"SASL demanded":                       {canaryUser + ":" + canary, required.Hosts(), nil, nil, "key sasl"},
		"DIGEST-MD5 to a Kerberos server":     {canaryUser + ":" + canary, byKerberos.Hosts(), digest.keys, nil, "another mechanism, such as Kerberos"},
		"Kerberos to a DIGEST-MD5 server":     {"", required.Hosts(), nil, krb.opts, "expects the mechanism DIGEST-MD5"},
		"Kerberos to a server without SASL":   {"", plain.Hosts(), nil, krb.opts, "has no SASL"},
		"a server that the KDC does not know": {"", byKerberos.Hosts(), nil, with(kerberos.Keytab("svc", keytab, here, kerberos.WithServerPrincipal("zookeeper/nowhere"))), "the KDC does not know this principal"},
		"a ticket for another server":         {"", byKerberos.Hosts(), nil, with(kerberos.Keytab("svc", keytab, here, kerberos.WithServerPrincipal("zookeeper/elsewhere"))), "with code -115"},
		"a client that the KDC does not know": {"", byKerberos.Hosts(), nil, with(kerberos.Keytab("ghost", keytab, here)), "no key of ghost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SASL demanded" {
				since(t, required, "3.6", "servers demand SASL since")
			}
			at := ""
			if c.user != "" {
				at = c.user + "@"
			}
			params := quick(append([]string{"connect_timeout", patience.String(), "acl", "open"}, c.kv...)...)
			client, err := zklock.Open("zk://"+at+c.hosts+rootOf(t)+"?"+params.Encode(), append(c.opts, zklock.WithLogger(searchedLog()))...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for verb, call := range calls(client) {
				began := time.Now()
				err := call(within(t))
				if !errors.Is(err, zklock.ErrNoAuth) || !errors.Is(err, driver.ErrAuthFailed) {
					t.Errorf("%s: %v, want ErrNoAuth and ErrAuthFailed", verb, err)
					continue
				}
				saysAll(t, err, []string{c.says})
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: after %v, want at once", verb, d)
				}
				look("a refusal", err)
			}
		})
	}
	t.Run("a keytab that is not there", func(t *testing.T) {
		t.Parallel()
		const limit = 5 * time.Second // enough for one attempt on a busy machine
		c := dial(t, byKerberos.Hosts(), quick("connect_timeout", limit.String()), with(kerberos.Keytab("svc", none, here))...)
		err := c.Ping(within(t))
		if !errors.Is(err, zklock.ErrUnavailable) {
			t.Fatalf("%v, want ErrUnavailable", err)
		}
		saysAll(t, err, []string{"no such file", none})
	})
}

// TestServersThatKnowNoSASL: without authProvider.sasl, servers authenticate clients and
// refuse access lists with their identities.
func TestServersThatKnowNoSASL(t *testing.T) {
	t.Parallel()
	long.Test(t, "a server with settings of its own")
	ensemble.Require(t)
	file := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(file, []byte(jaasDigest), 0o600); err != nil {
		t.Fatal(err)
	}
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Djava.security.auth.login.config=" + file, "-Dzookeeper.fips-mode=false"}})
	for _, acl := range []string{"sasl:app:cdrwa", "creator"} {
		err := digestIdentity().dial(t, e.Hosts(), []string{"acl", acl}).Ping(within(t))
		if !errors.Is(err, zklock.ErrNoAuth) || !errors.Is(err, driver.ErrInvalidACL) {
			t.Fatalf("acl=%s: %v, want ErrNoAuth and ErrInvalidACL", acl, err)
		}
		saysAll(t, err, []string{"authProvider.sasl"})
	}
}

// testSASLCharacters: user and password have characters outside of ASCII, and outside of ISO 8859-1.
func testSASLCharacters(t *testing.T, s *saslServers) {
	e := s.byDigest
	c, err := zklock.Open("zk://" + url.UserPassword("zoë", "grün5€").String() + "@" + e.Hosts() + rootOf(t) + "?" + quick("sasl", "digest-md5").Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	release(t, acquire(t, c.Mutex("x")))
}

// testRefusedSASLKeepsNoLocks: the password is changed at the servers, and the holder's connection
// is cut. Each of its attempts to come back prolongs its session. It stops when its lease is over,
// so the next waiter gets the lock. Then it reports the reason, and works again with the new password.
func testRefusedSASLKeepsNoLocks(t *testing.T, s *saslServers) {
	e := s.byDigest
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(canary)
	w := newWiretap(t, e.Hosts())
	open := func(hosts string, kv ...string) *zklock.Client {
		params := quick(append([]string{"sasl", "digest-md5", "pool_max_sessions", "1", "connect_timeout", patience.String()}, kv...)...)
		c, err := zklock.Open("zk://"+canaryUser+"@"+hosts+rootOf(t)+"?"+params.Encode(), zklock.WithLogger(searchedLog()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open(w.Addr(), "password_file", file)
	held := acquire(t, c.Mutex("x"))
	other := digestIdentity().dial(t, e.Hosts(), nil)
	hooks, begun := waits()
	waiter := digestIdentity().dial(t, e.Hosts(), nil, zklock.WithHooks(hooks))
	next := try(t, within(t), waiter.Mutex("x"))
	receive(t, "the next one to wait", begun)

	write("wrong")
	cut := time.Now()
	w.KillConns()
	receive(t, "the loss", held.Done())
	lost := time.Since(cut)
	l := next.must(t)
	t.Logf("the holder lost the lock %v after the cut, and the next waiter was granted it %v after the cut; the holder made %d connections", lost.Round(time.Millisecond), time.Since(cut).Round(time.Millisecond), w.made())
	if held.Valid() {
		t.Error("the lock is valid although another client holds it")
	}
	_, err := c.Mutex("y").Acquire(within(t))
	if !errors.Is(err, zklock.ErrNoAuth) {
		t.Errorf("Acquire: %v, want ErrNoAuth", err)
	} else {
		saysAll(t, err, []string{"password is wrong"})
	}
	for _, ops := range w.asked(1) {
		for _, op := range ops {
			if op != codeSASL {
				t.Errorf("operation %d was sent without an identity", op)
			}
		}
	}
	write(canary)
	release(t, l)
	release(t, acquire(t, c.Mutex("y")))
	release(t, acquire(t, other.Mutex("x")))
}

// testSASLClosesSessions ends a session by its credentials, as is done for a process that has died:
// the identity comes first, and a refused one ends nothing.
func testSASLClosesSessions(t *testing.T, s *saslServers) {
	s.each(t, func(t *testing.T, id identity, e *ensemble.Ensemble) {
		connector := func(as driver.URL, hosts string) driver.Connector {
			as.Hosts = []string{hosts}
			c, err := zkdriver.Driver{}.OpenConnector(as)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		open := func(hosts string) driver.Session {
			s, err := connector(id.as, hosts).Connect(within(t), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		p, err := proxy.New(e.Hosts())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		dead, witness := open(p.Addr()), open(e.Hosts())
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = dead.Close(ctx) // it is cut off
			_ = witness.Close(ctx)
		})
		node := rootOf(t)
		if _, err := dead.Create(within(t), node, nil, driver.Ephemeral, driver.CreatorACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		credentials, ok := driver.CredentialsOf(dead)
		if !ok {
			t.Fatal("the session has no credentials")
		}
		p.Refuse()
		p.KillConns()
		wrong := driver.URL{Scheme: "zk", User: canaryUser, Password: driver.NewSecret("wrong"), Params: url.Values{"sasl": {"digest-md5"}}}
		closer, _ := driver.CloserOf(connector(wrong, e.Hosts()))
		err = closer.CloseSession(within(t), credentials)
		if !errors.Is(err, driver.ErrAuthFailed) {
			t.Errorf("with a refused identity: %v, want ErrAuthFailed", err)
		}
		look("a refused close", err)
		if _, err := witness.Get(within(t), node); err != nil {
			t.Errorf("after a refused close: %v", err)
		}
		closer, _ = driver.CloserOf(connector(id.as, e.Hosts()))
		if err := closer.CloseSession(within(t), credentials); err != nil {
			t.Fatal(err)
		}
		if _, err := witness.Get(within(t), node); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("after the close: %v, want ErrNoNode", err)
		}
	})
}

// TestSASLOnAnotherServer: when the server of a holder ends, the holder authenticates at another
// one, and keeps its lock.
func TestSASLOnAnotherServer(t *testing.T) {
	t.Parallel()
	long.Test(t, "three servers for each mechanism")
	for name, id := range identities(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := id.start(t, 3)
			var hosts []string
			var links []*proxy.Proxy
			for _, s := range e.Servers() {
				p, err := proxy.New(s.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Close() })
				hosts, links = append(hosts, p.Addr()), append(links, p)
			}
			c := id.dial(t, strings.Join(hosts, ","), []string{"pool_max_sessions", "1"})
			held := acquire(t, c.Mutex("x"))
			for range 6 {
				for _, p := range links {
					p.Refuse() // its clients have to go elsewhere
					p.KillConns()
					if err := held.Verify(within(t)); err != nil {
						t.Fatal(err)
					}
					p.Heal()
				}
			}
			release(t, held)
		})
	}
}
