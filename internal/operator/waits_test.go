package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// A contender is written as its mode, w, r or p, in upper case if it holds, and then its recipe: none
// for zklock, f for Curator's InterProcessReadWriteLock, which zklock shares locks with, k for kazoo, c
// for Curator's InterProcessMutex, and l for its LeaderLatch.
func TestWaitsFor(t *testing.T) {
	modes := map[string]zklock.Mode{"w": zklock.Exclusive, "r": zklock.Shared, "p": zklock.Permit}
	nodes := map[string]string{"": "_c_-__WRIT__", "f": "_c_-__WRIT__", "k": "__lock__", "c": "_c_-lock-", "l": "_c_-latch-"}
	for _, c := range []struct{ queue, want string }{
		{"W w w", "[] [0] [1]"},
		{"R R w r r w", "[] [] [1 0] [2] [2] [4 3]"},
		{"R r w", "[] [] [1 0]"},
		{"W r r w w", "[] [0] [0] [2 1] [3]"},
		{"P p", "[] [0]"},
		{"P P p p", "[] [] one of [1 0] [2]"},
		{"P w p", "[] [0] [1]"},
		{"W Wk w wk wc", "[] [] [0] [1] []"},
		{"W rk r", "[] [] [0]"},
		{"Wf w rf r", "[] [0] [1] [1]"},
		{"W wf w", "[] [0] [1]"},
		{"Wc Wl wc wl", "[] [] [0] [1]"},
	} {
		var queue []zklock.Contender
		for text := range strings.FieldsSeq(c.queue) {
			mode, held := strings.ToLower(text[:1]), text[0] < 'a'
			queue = append(queue, zklock.Contender{Mode: modes[mode], Held: held, Node: nodes[text[1:]], Foreign: len(text) > 1})
		}
		var got []string
		for i := range queue {
			ahead, one := WaitsFor(queue, i)
			text := fmt.Sprint(ahead)
			if one {
				text = "one of " + text
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.queue, text, c.want)
		}
	}
}
