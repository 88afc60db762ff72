// Package cli has the command line of zklock: one file for each command. It uses the public
// API of package zklock, and package sessiondir.
package cli

import "github.com/spf13/cobra"

// subcommands make the commands, in the order of the help. Files of commands that do not
// exist on every system add theirs in init.
var subcommands []func(*app) *cobra.Command
