package servers_test

import (
	"fmt"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

func ExampleFreePorts() {
	ports, err := servers.FreePorts(3)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(ports))
	// Output: 3
}

func ExampleNamed() {
	redis, err := servers.Named("redis")
	if err != nil {
		panic(err)
	}
	fmt.Println(redis.Supports(fault.KillServer, 3))
	fmt.Println(redis.Supports(fault.KillLeader, 3))
	// Output:
	// <nil>
	// leader killed: no server of redis leads the others
}
