package zkdriver_test

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// Open checks everything that can be checked without a request.
func Example() {
	for _, url := range []string{
		"zk://zk1:2181,zk2:2181,[2001:db8::3]:2181/shop/locks?session_timeout=15s",
		"zk://shop:secret@zk1:2181/shop/locks",
		"zk://zk1:2181/shop/locks?tls_ca=ca.pem",
	} {
		client, err := zklock.Open(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("the lock orders/42 is", client.Mutex("orders/42").Path())
		client.Close()
	}
	// Output:
	// the lock orders/42 is /shop/locks/orders%2F42
	// zklock: open: zkdriver: the password of user "shop" would go to zk1:2181 unencrypted: use zks://, or allow it with auth_plaintext=true
	// zklock: open: zkdriver: key "tls_ca" needs TLS: use zks:// instead of zk://
}
