package place

import (
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

func ownNode(serial uint64, mode queue.Mode) queue.Node {
	return queue.Node{GUID: queue.GUID{Session: 1, Serial: serial}, Kind: queue.Kind{Mode: mode}, Name: string(rune('a' + serial))}
}

// An event counts together with reads on the same connection only: another connection's
// server may lag behind the event.
func TestLineThatWasHeardIsListedAgainElsewhere(t *testing.T) {
	fresh := func() *line {
		return &line{dialect: queue.Default, sight: Sight{Gen: 7}, q: []queue.Node{ownNode(1, queue.Exclusive), ownNode(2, queue.Exclusive), ownNode(3, queue.Exclusive)}}
	}
	for _, c := range []struct {
		what    string
		byEvent bool
		gen     uint64
		keeps   bool
	}{
		{"an event, and a read on its connection", true, 7, true},
		{"an event, and a read on another connection", true, 8, false},
		{"an event, and a read on an uncertain connection", true, 0, false},
		{"a read, and one on another connection", false, 8, true},
	} {
		l := fresh()
		l.removeGone(1, 7, c.byEvent)
		if kept := l.seen(c.gen, true) && l.q != nil; kept != c.keeps {
			t.Errorf("%s: the line is kept: %v, want %v", c.what, kept, c.keeps)
		}
		if c.keeps && l.sight.ByEvent {
			t.Errorf("%s: after the read the line still counts as known from an event", c.what)
		}
		if l := fresh(); c.byEvent {
			if l.removeGone(1, 7, true); l.seen(7, false) && !l.sight.ByEvent {
				t.Errorf("%s: a watch that was armed before the event counts as a read after it", c.what)
			}
		}
	}
}

// A line is walked only up to a length that depends on the waiter's kind. No line is
// walked past a node of another recipe, which may have been replaced by another node.
func TestLineIsWalkedWhileItIsShort(t *testing.T) {
	waiting := func(ahead int, mode, self queue.Mode) *line {
		l := &line{dialect: queue.Default}
		for i := range ahead {
			l.q = append(l.q, ownNode(uint64(i+1), mode))
		}
		l.q = append(l.q, ownNode(99, self))
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
		{listedPerRead + 1, queue.Exclusive, queue.Shared, false},
		{1000, queue.Shared, queue.Shared, true},
	} {
		if got := waiting(c.ahead, c.mode, c.self).short(); got != c.walks {
			t.Errorf("a %v contender behind %d %v ones: walks the line: %v, want %v", c.self, c.ahead, c.mode, got, c.walks)
		}
	}
	for _, c := range []struct {
		writers int
		walks   bool
	}{{20, true}, {21, false}} { // among ten thousand contenders
		l := waiting(10000-c.writers, queue.Shared, queue.Shared)
		for range c.writers {
			l.q = append([]queue.Node{ownNode(1, queue.Exclusive)}, l.q...)
		}
		if got := l.short(); got != c.walks {
			t.Errorf("a reader among ten thousand contenders, behind %d writers: walks the line: %v, want %v", c.writers, got, c.walks)
		}
	}
	l := waiting(2, queue.Exclusive, queue.Exclusive)
	l.q[1].GUID = queue.GUID{}
	if l.removeGone(1, 7, false); l.q != nil {
		t.Error("a line is walked past a node of another recipe")
	}
}
