package inspect

import (
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
