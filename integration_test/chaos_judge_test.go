package integration_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// finding is one fault that judge finds in the journals.
type finding struct {
	at      int64
	overlap bool // too many held the lock at the same time
	text    string
}

// judge checks the entries of one name. While an exclusive holder has the lock, no other
// contender holds it; no more permits are held than exist; and tokens are in the order of
// the holders.
func judge(entries []entry) (found []finding) {
	held := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.Version > 0 || e.From == 0 })
	slices.SortFunc(held, func(a, b entry) int { return cmp.Compare(a.From, b.From) })
	var inside []entry
	var writer, reader zklock.Token
	for _, e := range held {
		inside = slices.DeleteFunc(inside, func(other entry) bool { return other.To < e.From })
		for _, other := range inside {
			if e.Mode == zklock.Exclusive || other.Mode == zklock.Exclusive {
				found = append(found, finding{e.From, true, fmt.Sprintf("%s: worker %d held it (%v, token %v) at the same time as worker %d (%v, token %v) for %d ns",
					e.Name, e.Worker, e.Mode, e.Token, other.Worker, other.Mode, other.Token, min(e.To, other.To)-e.From)})
			}
		}
		inside = append(inside, e)
		switch e.Mode {
		case zklock.Permit:
			if len(inside) > chaosPermits {
				found = append(found, finding{e.From, true, fmt.Sprintf("%s: %d permits held at once", e.Name, len(inside))})
			}
			continue
		case zklock.Exclusive:
			if e.Token.Compare(reader) <= 0 {
				found = append(found, finding{e.From, false, fmt.Sprintf("%s: a writer's token %v after a reader's %v", e.Name, e.Token, reader)})
			}
		}
		if e.Token.Compare(writer) <= 0 {
			found = append(found, finding{e.From, false, fmt.Sprintf("%s: token %v after a writer's %v", e.Name, e.Token, writer)})
		}
		if e.Mode == zklock.Exclusive {
			writer = e.Token
		} else if e.Token.Compare(reader) > 0 {
			reader = e.Token
		}
	}
	return found
}

// judgeWrites checks the acknowledged writes of the register in ZooKeeper: no two writes
// made the same version, and versions follow the order of tokens.
func judgeWrites(entries []entry) (found []finding) {
	writes := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.Version == 0 })
	slices.SortFunc(writes, func(a, b entry) int { return cmp.Compare(a.Version, b.Version) })
	for i, e := range writes {
		if i == 0 {
			continue
		}
		if last := writes[i-1]; e.Version == last.Version || e.Token.Compare(last.Token) < 0 {
			found = append(found, finding{text: fmt.Sprintf("version %d was written with token %v, version %d with token %v", last.Version, last.Token, e.Version, e.Token)})
		}
	}
	return found
}

func TestChaosJudgeFindsWhatIsWrong(t *testing.T) {
	turn := func(mode zklock.Mode, zxid, from, to int64) entry {
		return entry{Name: "n", Mode: mode, Token: zklock.Token{Zxid: zxid}, From: from, To: to}
	}
	write := func(zxid int64, version int32) entry { return entry{Token: zklock.Token{Zxid: zxid}, Version: version} }
	const x, s, p = zklock.Exclusive, zklock.Shared, zklock.Permit
	for _, c := range []struct {
		name    string
		entries []entry
		want    []string
	}{
		{"one after the other", []entry{turn(x, 2, 30, 40), turn(x, 1, 10, 20), turn(s, 3, 50, 60), turn(s, 4, 55, 58), turn(x, 5, 61, 61)}, nil},
		{"never held for certain", []entry{turn(x, 1, 10, 20), turn(x, 2, 0, 0)}, nil},
		{"two writers", []entry{turn(x, 1, 10, 20), turn(x, 2, 20, 30)}, []string{"same time"}},
		{"a writer within a reader's turn", []entry{turn(s, 1, 10, 20), turn(s, 1, 10, 40), turn(x, 2, 30, 35)}, []string{"same time"}},
		{"a reader within a writer's turn", []entry{turn(x, 1, 10, 50), turn(s, 2, 20, 30)}, []string{"same time"}},
		{"the same token", []entry{turn(x, 1, 10, 20), turn(x, 1, 30, 40)}, []string{"after a writer's"}},
		{"a reader's token is older", []entry{turn(x, 2, 10, 20), turn(s, 1, 30, 40)}, []string{"after a writer's"}},
		{"a writer's token is older than a reader's", []entry{turn(s, 2, 10, 20), turn(x, 1, 30, 40)}, []string{"after a reader's"}},
		{"two permits", []entry{turn(p, 1, 10, 20), turn(p, 2, 10, 30), turn(p, 3, 21, 25)}, nil},
		{"three permits", []entry{turn(p, 1, 10, 20), turn(p, 2, 10, 30), turn(p, 3, 20, 25)}, []string{"3 permits"}},
		{"writes", []entry{write(1, 1), write(2, 4), write(1, 2)}, nil},
		{"a version twice", []entry{write(1, 1), write(1, 1)}, []string{"version 1"}},
		{"a late write", []entry{write(1, 3), write(2, 2)}, []string{"version 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := append(judge(c.entries), judgeWrites(c.entries)...)
			if len(found) != len(c.want) {
				t.Fatalf("found %v, want %q", found, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(found[i].text, want) {
					t.Errorf("found %v, want %q", found[i], want)
				}
			}
		})
	}
}
