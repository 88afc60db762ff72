package kerberos

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	mit "github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock/driver"
)

// TestIdentityStays: another principal's tickets or keys replace those of a live client. The client
// keeps its ticket while that is valid, and then has none. It never becomes the other one.
func TestIdentityStays(t *testing.T) {
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	k.Add("zookeeper/localhost")
	mine, others := k.Keytab("svc"), k.Keytab("other")
	myCache, othersCache := k.Cache("svc", mine), k.Cache("other", others)
	replace := func(file, by string) {
		b, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KRB5_CONFIG", k.ConfigFile())
	t.Setenv("KRB5_CLIENT_KTNAME", "")
	t.Setenv("KRB5CCNAME", myCache)
	fromCache, err := fromURL(driver.URL{})
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(name string, m *Mechanism) {
		t.Helper()
		_, err := m.Start(t.Context(), "localhost")
		if !errors.Is(err, driver.ErrAuthFailed) || !strings.Contains(err.Error(), "svc@"+mit.Realm) || !strings.Contains(err.Error(), "other@"+mit.Realm) {
			t.Errorf("%s: %v, want an error with both names that matches ErrAuthFailed", name, err)
		}
	}
	for name, m := range map[string]*Mechanism{"keytab": Keytab("", mine), "cache": Cache(myCache)} {
		if _, err := m.Start(t.Context(), "localhost"); err != nil {
			t.Fatal(name, err)
		}
		replace(mine, others)
		replace(myCache, othersCache)
		m.age(-time.Second, time.Minute)
		if _, err := m.Start(t.Context(), "localhost"); err != nil || m.theTicket(t).client.String() != "svc@"+mit.Realm {
			t.Errorf("%s: the ticket is of %v, %v", name, m.theTicket(t).client, err)
		}
		m.age(-2*time.Second, -time.Second)
		refuses(name, m)
		_ = os.Remove(mine) // Export appends to it
		k.Export("svc")
		k.Cache("svc", mine)
	}
	replace(myCache, othersCache)
	refuses("URL", fromCache.(*Mechanism))
}
