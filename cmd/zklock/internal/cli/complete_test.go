package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestCompletion: a shell asks for the names in use and for the nodes of a queue. Without an ensemble
// there is nothing to complete, and no message.
func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		hold(t, c.Mutex("orders/43"))
		queue, err := c.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]string{
			"who ":                 "orders/42 orders/43 :4",
			"who orders/43":        "orders/43 :4",
			"who orders/43 ":       ":4",
			"ls x":                 ":4",
			"run orders/42 ":       "orders/42 orders/43 :4",
			"run orders/42 -- ":    ":0",
			"revoke ":              "orders/42 orders/43 :4",
			"revoke orders/42 ":    node(queue[0]) + " " + node(queue[1]) + " :4",
			"release orders/42 ":   node(queue[0]) + " " + node(queue[1]) + " :4",
			"release orders/42 a ": ":4",
		} {
			line := strings.Split(args, " ")
			_, out, _ := command(t, e, append([]string{"__complete"}, line...)...)
			var got []string
			for text := range strings.Lines(out) {
				word, _, _ := strings.Cut(strings.TrimSpace(text), "\t")
				got = append(got, word)
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("%q: %s, want %s", args, text, want)
			}
		}
	})
	var out, stderr bytes.Buffer
	execute(t.Context(), []string{"__complete", "who", ""}, &out, &stderr, env(""), zklock.OpenConfig)
	if out.String() != ":4\n" || strings.Contains(stderr.String(), "URL") {
		t.Errorf("without a URL: %q, %q", out.String(), stderr.String())
	}
}

// TestShellsAreCompleted: there is a script for each shell.
func TestShellsAreCompleted(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out, stderr bytes.Buffer
		if code := execute(t.Context(), []string{"completion", shell}, &out, &stderr, env(""), zklock.OpenConfig); code != 0 || !strings.Contains(out.String(), "__complete") {
			t.Errorf("%s: %d, %s", shell, code, stderr.String())
		}
	}
}
