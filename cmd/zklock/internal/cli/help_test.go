package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestHelpOfEachCommand: --help prints what the command is for, how it is called, and each of its
// flags, on the standard output, and needs no ensemble.
func TestHelpOfEachCommand(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	var names []string
	var visit func(c *cobra.Command, path []string)
	visit = func(c *cobra.Command, path []string) {
		names = append(names, strings.Join(path, " "))
		code, out, stderr := command(t, e, append(path, "--help")...)
		if code != 0 || stderr != "" {
			t.Errorf("%v --help: %d, %q", path, code, stderr)
		}
		for _, want := range []string{"Usage:\n  zklock", "--help", strings.SplitN(c.Long, "\n", 2)[0]} {
			if !strings.Contains(out, want) {
				t.Errorf("%v --help lacks %q:\n%s", path, want, out)
			}
		}
		for line := range strings.SplitSeq(c.LocalFlags().FlagUsages(), "\n") {
			if !strings.Contains(out, line) {
				t.Errorf("%v --help lacks the flag %q", path, line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub, append(slices.Clone(path), sub.Name()))
			}
		}
	}
	root := Root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	visit(root, nil)
	for _, want := range []string{"run", "elect", "ls", "who", "top", "watch", "history", "release", "revoke", "reap", "doctor", "page", "completion bash"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no command %q in %q", want, names)
		}
	}
}

// TestCompletionOfEachShell: there is a script for each, and what it asks the command for has the
// commands and the formats.
func TestCompletionOfEachShell(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for shell, want := range map[string]string{"bash": "__start_zklock", "zsh": "#compdef zklock", "fish": "complete -c zklock", "powershell": "Register-ArgumentCompleter"} {
		code, out, stderr := command(t, e, "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(out, want) || !strings.Contains(out, "__complete") {
			t.Errorf("%s: %d, %d bytes, %q", shell, code, len(out), stderr)
		}
	}
	for args, want := range map[string]string{"re": "release\t", "who -o ": "json\n", "elect --observe -o ": "json\n"} {
		code, out, _ := command(t, e, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("completion of %q: %d, %q", args, code, out)
		}
	}
}
