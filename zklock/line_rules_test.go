package zklock

import "testing"

func ours(serial uint64, mode Mode) queued {
	return queued{guid: guid{1, serial}, kind: kind{mode: mode}, node: string(rune('a' + serial))}
}

// What an event has reported counts beside reads on the same connection only: another
// server may be behind it.
func TestLineThatWasHeardIsListedAgainElsewhere(t *testing.T) {
	fresh := func() *line {
		return &line{dialect: dialectZklock, gen: 7, q: []queued{ours(1, Exclusive), ours(2, Exclusive), ours(3, Exclusive)}}
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
	queue := func(ahead int, mode, self Mode) *line {
		l := &line{dialect: dialectZklock}
		for i := range ahead {
			l.q = append(l.q, ours(uint64(i+1), mode))
		}
		l.q = append(l.q, ours(99, self))
		return l
	}
	for _, c := range []struct {
		ahead      int
		mode, self Mode
		walks      bool
	}{
		{maxWalkedByWriter, Exclusive, Exclusive, true},
		{maxWalkedByWriter + 1, Exclusive, Exclusive, false},
		{maxWalkedByWriter + 1, Shared, Exclusive, false},
		{maxWalkedByReader, Exclusive, Shared, true},
		{maxWalkedByReader + 1, Exclusive, Shared, false},
		{1000, Shared, Shared, true},
	} {
		if got := queue(c.ahead, c.mode, c.self).short(); got != c.walks {
			t.Errorf("%v behind %d that are %v: walks %v, want %v", c.self, c.ahead, c.mode, got, c.walks)
		}
	}
	l := queue(2, Exclusive, Exclusive)
	l.q[1].guid = guid{}
	if l.left(1, 7, false); l.q != nil {
		t.Error("a line is walked past a node of another recipe")
	}
}
