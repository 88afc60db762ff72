package kerberos

import (
	"os"
	"testing"

	mit "github.com/zklock/go-zklock/internal/testkit/kdc"
)

// TestTornFiles: a keytab, or a credential cache, is read while another program writes it.
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
	for n := range keys {
		if got, err := parseKeytab("file", keys[:n]); err == nil && len(got.Entries) > 1 {
			t.Errorf("%d of %d bytes of a keytab have all %d keys", n, len(keys), len(got.Entries))
		}
	}
	for n := range tickets {
		if got, err := parseCache("file", tickets[:n]); err == nil && len(got.key.KeyValue) == 0 {
			t.Errorf("%d of %d bytes of a cache have a ticket without a key", n, len(tickets))
		}
	}
	if got, err := parseKeytab("file", keys); err != nil || len(got.Entries) != 2 {
		t.Errorf("the whole keytab: %v, %v", got, err)
	}
	if got, err := parseCache("file", tickets); err != nil || got.client.String() != "svc@"+mit.Realm {
		t.Errorf("the whole cache: %+v, %v", got, err)
	}
}
