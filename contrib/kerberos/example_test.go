package kerberos_test

import (
	"fmt"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// Files are read, and tickets are fetched, when the first connection is made.
func Example() {
	for what, m := range map[string]*kerberos.Mechanism{
		"a keytab": kerberos.Keytab("svc/host@EXAMPLE.COM", "/etc/svc.keytab"),
		"a cache":  kerberos.Cache("FILE:/run/svc/krb5cc", kerberos.WithConfigFile("/etc/svc/krb5.conf")),
		"servers that share a principal": kerberos.Keytab("svc", "/etc/svc.keytab",
			kerberos.WithServerPrincipal("zookeeper/cluster@EXAMPLE.COM")),
		"servers whose principals have the names in the URL": kerberos.Keytab("svc", "/etc/svc.keytab",
			kerberos.WithHostAsGiven()),
	} {
		client, err := zklock.Open("zk://zk1,zk2,zk3/shop/locks", zkdriver.WithSASL(m))
		if err != nil {
			fmt.Println(what, err)
			continue
		}
		fmt.Println(m.Name(), client.ACL())
		client.Close()
	}
	// Output:
	// GSSAPI [{31 auth }]
	// GSSAPI [{31 auth }]
	// GSSAPI [{31 auth }]
	// GSSAPI [{31 auth }]
}
