package kerberos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	mit "github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock/driver"
)

// age makes all tickets of a mechanism older: they are to be renewed, or expire, after those
// durations.
func (m *Mechanism) age(renew, end time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.tgt.renew, m.tgt.end = now.Add(renew), now.Add(end)
	for _, t := range m.tickets {
		t.renew, t.end, t.again = now.Add(renew), now.Add(end), time.Time{}
	}
}

// theTicket returns the only ticket for a server.
func (m *Mechanism) theTicket(t *testing.T) *ticket {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tickets) != 1 {
		t.Fatalf("%d tickets", len(m.tickets))
	}
	for _, only := range m.tickets {
		return only
	}
	return nil
}

// TestRenewal: a ticket is renewed before it expires. While no KDC answers, it serves until it
// expires, and no caller waits for the KDC each time.
func TestRenewal(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{Renewable: time.Hour})
	k.Add("zookeeper/localhost")
	keytab := k.Keytab("svc")
	here := WithConfigFile(k.ConfigFile())
	for name, m := range map[string]*Mechanism{
		"keytab": Keytab("svc", keytab, here),
		"cache":  Cache(k.Cache("svc", keytab, "-r", "1h"), here),
	} {
		begin := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_, err := m.Start(ctx, "localhost")
			return err
		}
		if err := begin(); err != nil {
			t.Fatal(name, err)
		}
		first := m.theTicket(t)
		if left := time.Until(first.end); time.Until(first.renew) > left*4/5 || time.Until(first.renew) < left/2 {
			t.Errorf("%s: a ticket with %v left is to be renewed in %v", name, left, time.Until(first.renew))
		}
		if err := begin(); err != nil || m.theTicket(t) != first {
			t.Errorf("%s: a fresh ticket was renewed, %v", name, err)
		}
		m.age(-time.Second, time.Minute)
		old := m.theTicket(t)
		if err := begin(); err != nil || m.theTicket(t) == old || time.Until(m.theTicket(t).end) < 2*time.Minute {
			t.Errorf("%s: the ticket was not renewed, %v", name, err)
		}

		k.Stop()
		m.age(-time.Second, time.Minute)
		old = m.theTicket(t)
		for range 3 {
			if err := begin(); err != nil || m.theTicket(t) != old {
				t.Errorf("%s: without a KDC: %v, want the old ticket", name, err)
			}
		}
		if time.Until(old.again) <= 0 {
			t.Errorf("%s: the next caller asks the KDC again", name)
		}
		m.age(-2*time.Second, -time.Second)
		if err := begin(); err == nil || !strings.Contains(err.Error(), "no KDC of realm") {
			t.Errorf("%s: with an expired ticket: %v", name, err)
		}
		k.Resume()
		if err := begin(); err != nil {
			t.Errorf("%s: the KDC is back: %v", name, err)
		}
	}
}

// TestRenewedElsewhere: another program replaces the tickets of a cache.
func TestRenewedElsewhere(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	k.Add("zookeeper/localhost")
	keytab := k.Keytab("svc")
	m := Cache(k.Cache("svc", keytab, "-l", "10m"), WithConfigFile(k.ConfigFile()))
	if _, err := m.Start(t.Context(), "localhost"); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(m.theTicket(t).end); left > 11*time.Minute {
		t.Errorf("%v are left of a ticket of 10 minutes", left)
	}
	k.Cache("svc", keytab, "-l", "1h")
	m.age(-time.Second, time.Minute)
	if _, err := m.Start(t.Context(), "localhost"); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(m.theTicket(t).end); left < 50*time.Minute {
		t.Errorf("%v are left of a ticket that was replaced by one of an hour", left)
	}
}

// TestUnknownServer: the KDC does not know one of the servers, or no longer. The tickets for the others
// are renewed.
func TestUnknownServer(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	k.Add("zookeeper/localhost")
	k.Add("zookeeper/gone")
	m := Keytab("svc", k.Keytab("svc"), WithConfigFile(k.ConfigFile()), WithHostAsGiven())
	ticketFor := func(host string) *ticket {
		x, err := m.Start(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		return x.(*exchange).ticket
	}
	old, gone := ticketFor("localhost"), ticketFor("gone")
	k.Admin("delprinc", "-force", "zookeeper/gone")

	m.age(-time.Second, time.Minute)
	if _, err := m.Start(t.Context(), "nowhere"); err == nil {
		t.Error("the KDC grants a ticket for a server that it does not know")
	}
	first := ticketFor("localhost")
	if first == old {
		t.Error("the ticket was not renewed after a server without a ticket")
	}
	m.age(-time.Second, time.Minute)
	if ticketFor("gone") != gone {
		t.Error("the KDC grants a ticket for a server that it no longer knows")
	}
	if ticketFor("localhost") == first {
		t.Error("the ticket was not renewed after a server with a ticket")
	}
}

// TestUncertainServer: the KDC does not know the server's principal. While DNS has not said that this
// is its name, another attempt may succeed.
func TestUncertainServer(t *testing.T) {
	t.Parallel()
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	m := Keytab("svc", k.Keytab("svc"), WithConfigFile(k.ConfigFile()))
	for known, text := range map[string]string{"": "DNS has not answered", "zk1": "the KDC does not know this principal"} {
		m.names.of = map[string]found{"zk1": {name: known, until: time.Now().Add(time.Hour)}}
		_, err := m.Start(t.Context(), "zk1")
		if errors.Is(err, driver.ErrAuthFailed) != (known != "") || err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", known, err)
		}
	}
}
