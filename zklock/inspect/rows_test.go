package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/operator"
)

// TestRowsBySecondHolder: a semaphore whose first permit is a leader, or is young, is in the place of its
// oldest permit.
func TestRowsBySecondHolder(t *testing.T) {
	held := func(since operator.Millis, candidacy bool) operator.Contender {
		return operator.Contender{Held: true, Candidacy: candidacy, Since: since}
	}
	s := state{list: list{Locks: []operator.Lock{
		{Name: "leader", Contenders: []operator.Contender{held(1, true)}},
		{Name: "mutex", Contenders: []operator.Contender{held(4, false)}},
		{Name: "stuck", Contenders: []operator.Contender{held(1, true), held(3, false)}},
		{Name: "young first", Contenders: []operator.Contender{held(5, false), held(2, false)}},
	}}}
	rows := rowsOf(s, "", "age")
	if len(rows) != 4 || rows[0].Name != "young first" || rows[1].Name != "stuck" || rows[2].Name != "mutex" || rows[3].Name != "leader" {
		t.Errorf("the order is %v", rows)
	}
}

// The head line has the fullest session, if it has many bytes of queue nodes: its end must not be too large a
// transaction.
func TestTotalHasTheFullestSession(t *testing.T) {
	var s state
	for i := range 400 {
		path := fmt.Sprintf("/zklock/%s%03d", strings.Repeat("n", 1489), i)
		full, other := operator.Contender{Node: strings.Repeat("c", 58), Session: "0x2", Host: "h", PID: 7}, operator.Contender{Node: "c", Session: "0x1", Host: "h", PID: 8}
		s.list.Locks = append(s.list.Locks, operator.Lock{Name: path, Path: path, Contenders: []operator.Contender{full, other}[:1+i%2]})
	}
	if text, want := totalOf(s).String(), "400 names, 2 waiting processes, 610 KiB of queue nodes on session 0x2 of h/7"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	s.list.Locks = s.list.Locks[:200]
	if text := totalOf(s).String(); strings.Contains(text, "session") {
		t.Errorf("%q, want nothing of a session with half as many", text)
	}
}

// The head line has the writes of this process that wait to be sent.
func TestTotalHasUnsentWrites(t *testing.T) {
	if text, want := totalOf(state{unsent: 3}).String(), "0 names, 0 waiting processes, 3 writes not sent yet"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
