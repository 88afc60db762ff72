package zklock_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// The driver gets the options in their order. A client with such options has an identity, so its
// znodes belong to it.
func TestDriverOptions(t *testing.T) {
	c, err := zklock.Open("keyed://h", zklock.WithDriverOption(1), zklock.WithDriverOption("two"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if u := <-lastKeyed.urls; !reflect.DeepEqual(u.Options, []any{1, "two"}) {
		t.Errorf("the driver got the options %v", u.Options)
	}
	if acl := c.ACL(); !reflect.DeepEqual(acl, driver.CreatorACL(driver.PermAll)) {
		t.Errorf("the access list is %v, want that of the creator", acl)
	}
	if _, err := zklock.Open("mem://", zklock.WithDriverOption(1)); err == nil || !strings.Contains(err.Error(), "type int") {
		t.Errorf("an option that the driver does not know: %v", err)
	}
}
