package memdriver_test

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestRegistered(t *testing.T) {
	if got := strings.Join(zklock.Drivers(), " "); !strings.Contains(got, "mem") {
		t.Fatalf("drivers: %s", got)
	}
	if keys := (memdriver.Driver{}).Keys(); len(keys) != 0 {
		t.Fatalf("keys: %q", keys)
	}
}

// TestNamed checks that one ensemble is shared under a name, also by URLs and in one
// bubble after another, until it is closed.
func TestNamed(t *testing.T) {
	const name = "named-test"
	e := memdriver.Named(name)
	if e != memdriver.Named(name) || e == memdriver.Named(name+"2") {
		t.Fatal("one name has two ensembles, or two names share one")
	}
	for _, path := range []string{"/a", "/b"} {
		synctest.Test(t, func(t *testing.T) {
			c, err := memdriver.Driver{}.OpenConnector(driver.URL{Scheme: "mem", Hosts: []string{name}})
			if err != nil {
				t.Fatal(err)
			}
			s := connect(t, c, 10*time.Second)
			create(t, s, path, driver.Persistent)
			pass(time.Minute)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	s := connect(t, e.Connector(), 10*time.Second)
	if !has(t, s, "/a") || !has(t, s, "/b") {
		t.Fatal("the sessions of one name do not share one tree")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if memdriver.Named(name) == e {
		t.Fatal("Named returned an ensemble that is closed")
	}
}

// TestPrivate: each connector without a name has a private ensemble. After the
// connector is closed, the ensemble lives as long as it has sessions.
func TestPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := memdriver.Driver{}.OpenConnector(driver.URL{Scheme: "mem"})
		if err != nil {
			t.Fatal(err)
		}
		other, err := memdriver.Driver{}.OpenConnector(driver.URL{Scheme: "mem", Hosts: []string{""}})
		if err != nil {
			t.Fatal(err)
		}
		s, stranger := connect(t, c, 10*time.Second), connect(t, other, 10*time.Second)
		create(t, s, "/a", driver.Persistent)
		if has(t, stranger, "/a") {
			t.Fatal("two private connectors share an ensemble")
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !has(t, s, "/a") {
			t.Fatal("the session ended with its connector")
		}
		_, err = c.Connect(t.Context(), 10*time.Second)
		want(t, err, driver.ErrClosed, "connect after close")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := stranger.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestBadURLs: the error for a bad URL says what is wrong, and never shows the
// password.
func TestBadURLs(t *testing.T) {
	for _, test := range []struct {
		u    driver.URL
		says string
	}{
		{driver.URL{Hosts: []string{"a", "b"}}, "2 hosts"},
		{driver.URL{Hosts: []string{"a:2181"}}, `"a:2181"`},
		{driver.URL{Hosts: []string{"[::1]"}}, `"[::1]"`},
		{driver.URL{Params: url.Values{"tls_ca": {"x"}}}, `"tls_ca"`},
	} {
		test.u.User, test.u.Password = "canary", driver.NewSecret("hunter2")
		_, err := memdriver.Driver{}.OpenConnector(test.u)
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %s", test.u, err, test.says)
		}
	}
}

// TestUserIsDigestIdentity: for an access list, two connectors with the same user and
// password are the same identity, and others are not.
func TestUserIsDigestIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		alice := connect(t, e.As("alice", driver.NewSecret("a")), 10*time.Second)
		again := connect(t, e.As("alice", driver.NewSecret("a")), 10*time.Second)
		if _, err := alice.Create(t.Context(), "/a", nil, driver.Persistent, driver.CreatorACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		if !has(t, again, "/a") {
			t.Fatal("the same identity cannot read the node")
		}
		for _, c := range []driver.Connector{e.Connector(), e.As("alice", driver.NewSecret("b")), e.As("bob", driver.NewSecret("a"))} {
			_, err := connect(t, c, 10*time.Second).Get(t.Context(), "/a")
			want(t, err, driver.ErrNoAuth, "get with another identity")
		}
		_, err := connect(t, e.Connector(), 10*time.Second).Create(t.Context(), "/b", nil, driver.Persistent, driver.CreatorACL(driver.PermAll))
		want(t, err, driver.ErrInvalidACL, "creator without an identity")
	})
}
