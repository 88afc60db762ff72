// Command zklock runs commands under distributed locks on Apache ZooKeeper, and shows which
// processes hold locks and wait for them. "zklock help" has its commands, and docs/command.md
// describes them.
package main

import (
	"os"

	"github.com/zklock/go-zklock/cmd/zklock/internal/cli"
)

func main() { os.Exit(cli.Main()) }
