package servers_test

import (
	"fmt"

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
