package kerberos

import (
	"fmt"
	"os"
	"strings"
	"testing"

	mit "github.com/zklock/go-zklock/internal/testkit/kdc"
)

// TestTornFiles: a keytab, or a credential cache, is read while another program writes it. No
// error holds a key.
func TestTornFiles(t *testing.T) {
	mit.Require(t)
	k := mit.Start(t, mit.Config{})
	keytab := k.Keytab("svc")
	cache := k.Cache("svc", keytab)
	keys, err := os.ReadFile(keytab)
	if err != nil {
		t.Fatal(err)
	}
	tickets, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := parseKeytab("file", keys)
	if err != nil || len(whole.Entries) != 2 {
		t.Fatalf("the whole keytab: %v, %v", whole, err)
	}
	for n := range keys {
		got, err := parseKeytab("file", keys[:n])
		if err == nil && len(got.Entries) > 1 {
			t.Errorf("%d of %d bytes of a keytab have all %d keys", n, len(keys), len(got.Entries))
		}
		for _, e := range whole.Entries {
			key := e.Key.KeyValue
			for _, form := range []string{"%s", "%q", "%x", "%X", "%v"} {
				if err != nil && strings.Contains(err.Error(), strings.Trim(fmt.Sprintf(form, key), `"[]`)) {
					t.Errorf("the error for %d of %d bytes of a keytab has a key, in the form %s", n, len(keys), form)
				}
			}
		}
	}
	for n := range tickets {
		if got, err := parseCache("file", tickets[:n]); err == nil && len(got.key.KeyValue) == 0 {
			t.Errorf("%d of %d bytes of a cache have a ticket without a key", n, len(tickets))
		}
	}
	if got, err := parseCache("file", tickets); err != nil || got.client.String() != "svc@"+mit.Realm {
		t.Errorf("the whole cache: %+v, %v", got, err)
	}
}
