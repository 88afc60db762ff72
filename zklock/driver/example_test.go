package driver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A transaction is applied as a whole or not at all.
func ExampleSession() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()
	session, err := ensemble.Connector().Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)

	everyone := driver.OpenACL(driver.PermAll)
	_, err = session.Multi(ctx, []driver.Op{
		driver.CreateOp("/config", []byte("1"), driver.Persistent, everyone),
		driver.CreateOp("/config/old", nil, driver.Persistent, everyone),
	})
	fmt.Println(err)
	_, err = session.Multi(ctx, []driver.Op{
		driver.CheckOp("/config", 0),
		driver.DeleteOp("/config/old", driver.AnyVersion),
		driver.SetOp("/config", []byte("2"), 7),
	})
	fmt.Println("another version:", errors.Is(err, driver.ErrBadVersion))
	names, _, err := session.Children(ctx, "/config")
	fmt.Println(names, err)
	// Output:
	// <nil>
	// another version: true
	// [old] <nil>
}

// A znode with CreatorACL is only for sessions that have authenticated as its creator did.
func ExampleCreatorACL() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()
	secret := driver.NewSecret("a password")
	fmt.Println("it prints as", secret)
	create, err := ensemble.As("shop", secret).Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer create.Close(ctx)
	if _, err := create.Create(ctx, "/private", nil, driver.Persistent, driver.CreatorACL(driver.PermAll)); err != nil {
		fmt.Println(err)
	}
	other, err := ensemble.Connector().Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close(ctx)
	_, err = other.Get(ctx, "/private")
	fmt.Println("refused:", errors.Is(err, driver.ErrNoAuth))
	// Output:
	// it prints as REDACTED
	// refused: true
}

// A URL names an access list by its key acl.
func ExampleParseACL() {
	for _, text := range []string{"creator", "sasl:svc/zk1@EXAMPLE.COM:cdrwa,ip:10.0.0.1:r", "sasl:svc:all"} {
		list, err := driver.ParseACL(text)
		fmt.Println(list, err)
	}
	// Output:
	// [{31 auth }] <nil>
	// [{31 sasl svc/zk1@EXAMPLE.COM} {1 ip 10.0.0.1}] <nil>
	// [] want creator or open, or entries of the form SCHEME:ID:PERMS, separated by commas, such as sasl:svc:cdrwa
}

// A process that has a session's credentials can end it, although another process has opened it.
func ExampleCloserOf() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()
	session, err := ensemble.Connector().Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	credentials, _ := driver.CredentialsOf(session)

	closer, can := driver.CloserOf(ensemble.Connector())
	fmt.Println("the driver can:", can)
	fmt.Println(closer.CloseSession(ctx, credentials))
	_, err = session.Get(ctx, "/")
	fmt.Println("expired:", errors.Is(err, driver.ErrSessionExpired))
	// Output:
	// the driver can: true
	// <nil>
	// expired: true
}
