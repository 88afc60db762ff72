// Command zklock-kerberos is the command zklock with Kerberos: it also knows sasl=kerberos in URLs.
// It is a module of its own, so that the command zklock does not get the dependencies of Kerberos.
package main

import (
	"os"

	"github.com/zklock/go-zklock/cmd/zklock/internal/cli"
	_ "github.com/zklock/go-zklock/contrib/kerberos"
)

func main() { os.Exit(cli.Main()) }
