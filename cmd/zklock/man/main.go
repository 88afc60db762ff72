// Command man writes the manual pages of zklock into a folder: zklock.1, and a page for each of
// its commands. It is a module of its own, so that programs that use the library do not get
// the dependencies of the generator.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/zklock/go-zklock/cmd/zklock/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "man: want one argument, the folder for the pages")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes the pages into a folder, and makes the folder if it does not exist.
func write(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return doc.GenManTree(cli.Root(), &doc.GenManHeader{Title: "ZKLOCK", Section: "1", Source: "zklock", Manual: "zklock"}, folder)
}
