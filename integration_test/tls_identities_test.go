package integration_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// TestSecureIdentities: the identity that created a lock's znodes, by password or by
// certificate, owns them. Other identities can neither see nor break the lock.
func TestSecureIdentities(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	files := newPEMFiles(t)
	e := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	hosts := byName(t, e.SecureHosts())
	params := func(name string, kv ...string) url.Values {
		kv = append(kv, "tls_ca", files.write("ca.pem", ours.pem), "acl", "creator")
		if name != "" {
			c := ours.issue(time.Hour, name)
			kv = append(kv, "tls_cert", files.write(name+".pem", c.cert), "tls_key", files.write(name+".key", c.key))
		}
		return quick(kv...)
	}
	for _, who := range []struct {
		name            string
		user, cert      string // the owner's
		otherU, otherC  string // the second identity's
		scheme, subject string // the entry in the access list
	}{
		{"digest", canaryUser + ":" + canary + "@", "", "mallory:" + canary + "@", "", "digest", canaryUser + ":"},
		{"digest with a wrong password", canaryUser + ":" + canary + "@", "", canaryUser + ":wrong@", "", "digest", canaryUser + ":"},
		{"x509", "", "service-a", "", "service-b", "x509", "CN=service-a"},
		{"x509 against none", "", "service-a", "", "", "x509", "CN=service-a"},
	} {
		t.Run(who.name, func(t *testing.T) {
			owner := dialTLS(t, who.user, hosts, params(who.cert))
			if err := owner.Ping(within(t)); err != nil {
				t.Fatal(err)
			}
			held := acquire(t, owner.Mutex("x"))
			partner := dialTLS(t, who.user, hosts, params(who.cert))
			next := try(t, within(t), partner.Mutex("x"))
			eventually(t, "the partner is in the queue", func() bool {
				c, err := owner.Contenders(within(t), "x")
				return err == nil && len(c) == 2
			})
			mine, err := owner.Contenders(within(t), "x")
			if err != nil {
				t.Fatal(err)
			}

			secondParams := params(who.otherC)
			if who.otherU == "" && who.otherC == "" {
				secondParams.Set("acl", "open") // without an identity it cannot own znodes
			}
			second := dialTLS(t, who.otherU, hosts, secondParams)
			for verb, call := range map[string]func() error{
				"Ping":       func() error { return second.Ping(within(t)) },
				"Acquire":    func() error { _, err := second.Mutex("x").Acquire(within(t)); return err },
				"TryAcquire": func() error { _, err := second.Mutex("x").TryAcquire(within(t)); return err },
				"Contenders": func() error { _, err := second.Contenders(within(t), "x"); return err },
				"Break":      func() error { return second.Break(within(t), "x", mine[0].Node) },
				"another":    func() error { _, err := second.Mutex("y").Acquire(within(t)); return err },
			} {
				began := time.Now()
				if err := call(); !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), rootOf(t)) {
					t.Errorf("%s by the second identity: %v, want ErrNoAuth and the path in the text", verb, err)
				}
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: refused after %v, want at once", verb, d)
				}
			}
			// The server refuses the second identity, too, without zklock's checks.
			config := ours.issue(time.Hour, who.otherC).config(t, ours)
			if who.otherC == "" {
				config.Certificates = nil
			}
			raw := dialRawTLS(t, e.SecureHosts(), config)
			dir := owner.Mutex("x").Path()
			node := dir + "/" + mine[0].Node
			for op, call := range map[string]func() error{
				"list the locks": func() error { _, _, err := raw.Children(rootOf(t)); return err },
				"list the queue": func() error { _, _, err := raw.Children(dir); return err },
				"read":           func() error { _, _, err := raw.Get(node); return err },
				"write":          func() error { _, err := raw.Set(node, nil, -1); return err },
				"delete":         func() error { return raw.Delete(node, -1) },
				"queue": func() error {
					_, err := raw.Create(dir+"/x", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
					return err
				},
				"open": func() error { _, err := raw.SetACL(dir, zk.WorldACL(zk.PermAll), -1); return err },
			} {
				if err := call(); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s with a plain client: %v, want %v", op, err, zk.ErrNoAuth)
				}
			}
			if err := held.Verify(within(t)); err != nil {
				t.Errorf("the holder's lock after that: %v", err)
			}

			// The access lists have one entry, for the owner.
			asOwner := dialRawTLS(t, e.SecureHosts(), ours.issue(time.Hour, "service-a").config(t, ours))
			if who.user != "" {
				if err := asOwner.AddAuth("digest", []byte(strings.TrimSuffix(who.user, "@"))); err != nil {
					t.Fatal(err)
				}
			}
			for _, path := range []string{rootOf(t), dir, node} {
				acl, _, err := asOwner.GetACL(path)
				if err != nil || len(acl) != 1 || acl[0].Scheme != who.scheme || !strings.HasPrefix(acl[0].ID, who.subject) {
					t.Errorf("the access list of %s has %d entries %v, %v, want one of the owner", path, len(acl), schemes(acl), err)
				}
			}
			release(t, held)
			release(t, next.must(t))
		})
	}
}

func schemes(acl []zk.ACL) (s []string) {
	for _, a := range acl {
		s = append(s, a.Scheme)
	}
	return s
}
