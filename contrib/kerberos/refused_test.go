package kerberos

import (
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	mit "github.com/zklock/go-zklock/internal/testkit/kdc"
)

// authenticates reports whether a server with those keys accepts a mechanism's next connection. It
// answers a client that it accepts.
func authenticates(t *testing.T, m *Mechanism, keys *keytab.Keytab) bool {
	t.Helper()
	x, err := m.Start(t.Context(), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := x.Step(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, message, err := unframe(token)
	if err != nil {
		t.Fatal(err)
	}
	var r messages.APReq
	if err := r.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	if r.Ticket.DecryptEncPart(keys, &types.PrincipalName{NameString: r.Ticket.SName.NameString}) != nil {
		return false
	}
	a := &acceptor{t: t, key: r.Ticket.DecryptedEncPart.Key}
	a.read(token)
	if _, _, err := x.Step(a.reply(a.key, a.authenticator.CTime, a.authenticator.Cusec)); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestRefusedTicket: the servers get new keys, and refuse the tickets that clients have. A client has
// another ticket for the next connection, and keeps a ticket that a server has accepted.
func TestRefusedTicket(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	k.Add("zookeeper/localhost")
	m := Keytab("svc", k.Keytab("svc"), WithConfigFile(k.ConfigFile()))
	export := func() *keytab.Keytab {
		keys, err := loadKeytab(k.Export("zookeeper/localhost"))
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	later := func() { // than an exchange takes, and than the pause after a failed fetch
		ticket := m.theTicket(t)
		ticket.got, ticket.again = ticket.got.Add(-time.Minute), time.Time{}
	}
	first := export()
	if !authenticates(t, m, first) {
		t.Fatal("a server with the key of the KDC refuses the client")
	}
	accepted := m.theTicket(t)
	later()
	if !authenticates(t, m, first) || m.theTicket(t) != accepted {
		t.Error("a ticket that a server has accepted is not used again")
	}
	k.Admin("cpw", "-randkey", "zookeeper/localhost")
	second := export()
	second.Entries = second.Entries[len(first.Entries):] // the file has the old keys, too
	if authenticates(t, m, second) {
		t.Fatal("a server with other keys than those of the ticket accepts it")
	}
	k.Stop()
	if authenticates(t, m, second) || m.theTicket(t) != accepted {
		t.Error("without a KDC, the old ticket is not used")
	}
	k.Resume()
	later()
	if !authenticates(t, m, second) {
		t.Error("the ticket that was refused is used again")
	}
}

// TestRefusedGrantingTicket: the KDC gets a new key, and refuses the ticket-granting tickets that
// clients have. A client has another one at once, or when kinit has run.
func TestRefusedGrantingTicket(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	k.Add("zookeeper/localhost")
	k.Add("zookeeper/zk2")
	keytab := k.Keytab("svc")
	for name, source := range map[string]func() source{
		"keytab": func() source { return &keytabSource{principal: "svc", file: keytab} },
		"cache":  func() source { return &cacheSource{file: k.Cache("svc", keytab)} },
	} {
		m := newMechanism(source(), []Option{WithConfigFile(k.ConfigFile()), WithHostAsGiven()})
		if _, err := m.Start(t.Context(), "localhost"); err != nil {
			t.Fatal(name, err)
		}
		k.Admin("cpw", "-randkey", "krbtgt/"+mit.Realm)
		if name == "cache" {
			if _, err := m.Start(t.Context(), "zk2"); err == nil {
				t.Error("the KDC accepts a ticket-granting ticket with another key than its own")
			}
			k.Cache("svc", keytab)
		}
		if _, err := m.Start(t.Context(), "zk2"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
