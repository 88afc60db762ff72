package memdriver_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestUserUnderFIPS: with GODEBUG=fips140=only a user is a digest identity, in a URL, too, with Go 1.26 or later. Go 1.25
// cannot make an exception for SHA-1: then it is an error. Neither is a panic, and a client draws random numbers in
// a bubble. The mode is that of a process, so the test starts itself.
func TestUserUnderFIPS(t *testing.T) {
	if !fips.Only() {
		child := exec.Command(os.Args[0], "-test.run=^TestUserUnderFIPS$")
		child.Env = append(os.Environ(), "GODEBUG="+fips.Mode)
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.Named("fips")
		defer e.Close()
		c, err := zklock.OpenConnector(e.Connector()) // draws numbers
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		url, err := memdriver.Driver{}.OpenConnector(driver.URL{Scheme: "mem", Hosts: []string{"fips"}, User: "alice", Password: driver.NewSecret("a")})
		if strings.HasPrefix(runtime.Version(), "go1.25") {
			if err == nil || !strings.Contains(err.Error(), "GODEBUG=fips140=only forbids it up to Go 1.25") {
				t.Error("a URL:", err)
			}
			if _, err := e.As("alice", driver.NewSecret("a")).Connect(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "SHA-1") {
				t.Error("As:", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		alice := connect(t, url, 10*time.Second)
		if _, err := alice.Create(t.Context(), "/a", nil, driver.Persistent, driver.CreatorACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		if !has(t, connect(t, e.As("alice", driver.NewSecret("a")), 10*time.Second), "/a") {
			t.Error("the same identity cannot read the node")
		}
		_, err = connect(t, e.As("alice", driver.NewSecret("b")), 10*time.Second).Get(t.Context(), "/a")
		want(t, err, driver.ErrNoAuth, "get with another password")
	})
}
