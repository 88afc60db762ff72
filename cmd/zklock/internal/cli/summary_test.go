package cli

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// TestOrderBySecondHolder: a semaphore whose first permit is a leader, or is young, is in the place of its
// oldest permit.
func TestOrderBySecondHolder(t *testing.T) {
	held := func(age time.Duration, candidacy bool) zklock.Contender {
		return zklock.Contender{Held: true, Candidacy: candidacy, Since: time.Now().Add(-age)}
	}
	for _, by := range []order{"age", "waiters"} {
		var all []listed
		for _, info := range []zklock.LockInfo{
			{Name: "leader", Contenders: []zklock.Contender{held(4*time.Hour, true)}},
			{Name: "mutex", Contenders: []zklock.Contender{held(time.Hour, false)}},
			{Name: "stuck", Contenders: []zklock.Contender{held(4*time.Hour, true), held(2*time.Hour, false)}},
			{Name: "young first", Contenders: []zklock.Contender{held(time.Minute, false), held(3*time.Hour, false)}},
		} {
			all = append(all, listed{LockInfo: info})
		}
		by.sort(all)
		if all[0].Name != "young first" || all[1].Name != "stuck" || all[2].Name != "mutex" || all[3].Name != "leader" {
			t.Errorf("%s: %s, %s, %s, %s", by, all[0].Name, all[1].Name, all[2].Name, all[3].Name)
		}
	}
}
