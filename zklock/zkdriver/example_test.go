package zkdriver_test

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zkdriver"
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
	// zklock: open: zkdriver: the user's password would go to zk1:2181 unencrypted: use zks://, or allow it with auth_plaintext=true
	// zklock: open: zkdriver: key "tls_ca" needs TLS: use zks:// instead of zk://
}

// anonymous is a mechanism: ANONYMOUS of RFC 4505, which no ZooKeeper server has.
type anonymous struct{}

func (anonymous) Name() string { return "ANONYMOUS" }

func (anonymous) Start(context.Context, string) (zkdriver.Exchange, error) { return anonymous{}, nil }

func (anonymous) Step([]byte) (response []byte, done bool, err error) {
	return []byte("shop"), true, nil
}

// Package contrib/kerberos has the mechanism for Kerberos. A URL's key chooses DIGEST-MD5.
func ExampleWithSASL() {
	client, err := zklock.Open("zk://zk1:2181/shop/locks", zkdriver.WithSASL(anonymous{}))
	fmt.Println(err)
	defer client.Close()
	_, err = zklock.Open("zk://shop:secret@zk1:2181/shop/locks?sasl=digest-md5", zkdriver.WithSASL(anonymous{}))
	fmt.Println(err)
	// Output:
	// <nil>
	// zklock: open: zkdriver: key "sasl" and WithSASL both choose a SASL mechanism: use one of them
}
