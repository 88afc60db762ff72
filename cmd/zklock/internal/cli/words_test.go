package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestDidYouMean: a mistake in a command, a flag or a key of the URL is met with what was meant.
func TestDidYouMean(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for args, want := range map[string]string{
		"lss":                            `did you mean "ls"?`,
		"relase x y":                     `did you mean "release"?`,
		"xyzzy":                          "",
		"run --tyr x -- true":            "did you mean --try?",
		"ls --ulr zk://h/x":              "did you mean --url?",
		"revoke --raeson x y z":          "did you mean --reason?",
		"ls --something":                 "",
		"ls --url zk://h/x?tick_tme=2s":  `did you mean "tick_time"? (known: `,
		"ls --url zk://h/x?tls_sert=a":   `did you mean "tls_cert"? (known: `,
		"ls --url zk://h/x?something=2s": "known: ",
		"ls --url zkss://h/x":            `did you mean "zks"? (known: mem, zk, zks)`,
		"ls -o jsn":                      `did you mean "json"?`,
	} {
		code, _, stderr := command(t, e, strings.Fields(args)...)
		if code != exitUsage && code != exitConfiguration || !strings.Contains(stderr, want) || strings.Contains(stderr, "did you mean") != strings.HasPrefix(want, "did") {
			t.Errorf("%s: %d, %s, want %q", args, code, stderr, want)
		}
	}
}

// TestMessagesAreForOperators: they name what an operator can set, and no package and no option of
// the library.
func TestMessagesAreForOperators(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	c, other := client(t, e), client(t, e)
	hold(t, c.Mutex("x"))
	_, late := other.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Millisecond))
	_, scheme := zklock.Open("nothing://x")
	for want, err := range map[string]error{"the time of --wait has passed": late, `unknown scheme "nothing"`: scheme, "no answer in time": fmt.Errorf("ping: %w", context.DeadlineExceeded)} {
		text := inWords(err)
		if !strings.Contains(text, want) {
			t.Errorf("%v: %s, want %q", err, text, want)
		}
		for _, word := range []string{"WithWait", "import", "package", "context deadline", "zklock: "} {
			if strings.Contains(text, word) {
				t.Errorf("%q is for programmers: %s", word, text)
			}
		}
	}
}
