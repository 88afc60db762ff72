package place

import (
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

func ours(serial uint64, mode queue.Mode) queue.Node {
	return queue.Node{GUID: queue.GUID{Session: 1, Serial: serial}, Kind: queue.Kind{Mode: mode}, Name: string(rune('a' + serial))}
}

// What an event has reported counts beside reads on the same connection only: another
// server may be behind it.
func TestLineThatWasHeardIsListedAgainElsewhere(t *testing.T) {
	fresh := func() *line {
		return &line{dialect: queue.Default, gen: 7, q: []queue.Node{ours(1, queue.Exclusive), ours(2, queue.Exclusive), ours(3, queue.Exclusive)}}
	}
	for _, c := range []struct {
		what  string
		heard bool
		gen   uint64
		keeps bool
	}{
		{"an event, and a read on its connection", true, 7, true},
		{"an event, and a read on another connection", true, 8, false},
		{"an event, and a read on an uncertain connection", true, 0, false},
		{"a read, and one on another connection", false, 8, true},
	} {
		l := fresh()
		l.left(1, 7, c.heard)
		if kept := l.seen(c.gen, true) && l.q != nil; kept != c.keeps {
			t.Errorf("%s: the line is kept: %v, want %v", c.what, kept, c.keeps)
		}
		if c.keeps && l.heard {
			t.Errorf("%s: the read does not count", c.what)
		}
		if l := fresh(); c.heard {
			if l.left(1, 7, true); l.seen(7, false) && !l.heard {
				t.Errorf("%s: a watch that was there before counts as a read", c.what)
			}
		}
	}
}

// How long a line may be to be walked, by who walks it. A node of another recipe is
// never walked past: something may have been put in its place.
func TestLineIsWalkedWhileItIsShort(t *testing.T) {
	waiting := func(ahead int, mode, self queue.Mode) *line {
		l := &line{dialect: queue.Default}
		for i := range ahead {
			l.q = append(l.q, ours(uint64(i+1), mode))
		}
		l.q = append(l.q, ours(99, self))
		return l
	}
	for _, c := range []struct {
		ahead      int
		mode, self queue.Mode
		walks      bool
	}{
		{maxWalkedByWriter, queue.Exclusive, queue.Exclusive, true},
		{maxWalkedByWriter + 1, queue.Exclusive, queue.Exclusive, false},
		{maxWalkedByWriter + 1, queue.Shared, queue.Exclusive, false},
		{maxWalkedByReader, queue.Exclusive, queue.Shared, true},
		{maxWalkedByReader + 1, queue.Exclusive, queue.Shared, false},
		{1000, queue.Shared, queue.Shared, true},
	} {
		if got := waiting(c.ahead, c.mode, c.self).short(); got != c.walks {
			t.Errorf("%v behind %d that are %v: walks %v, want %v", c.self, c.ahead, c.mode, got, c.walks)
		}
	}
	l := waiting(2, queue.Exclusive, queue.Exclusive)
	l.q[1].GUID = queue.GUID{}
	if l.left(1, 7, false); l.q != nil {
		t.Error("a line is walked past a node of another recipe")
	}
}
