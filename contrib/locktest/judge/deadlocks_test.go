package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestMeasureDeadlocks: journals of two or three clients, and the figures of each. Worker 1 holds a by
// acquisition 1, worker 2 holds b by 2, and worker 3 holds c by 3.
func TestMeasureDeadlocks(t *testing.T) {
	const hold = "1 acquire 1 a, 1 granted 1 a, 2 acquire 2 b, 2 granted 2 b, 3 acquire 3 c, 3 granted 3 c, "
	const pair = hold + "1 acquire 4 b 1, 2 acquire 5 a 2, "
	const broken = pair + "2 failed 5 a, 2 release 2 b, 1 granted 4 b, "
	for name, c := range map[string]struct {
		journal string
		want    judge.Deadlocks
		passed  bool
	}{
		"no circle":                {hold + "1 acquire 4 b 1, 2 release 2 b, 1 granted 4 b", judge.Deadlocks{Meals: 1}, false},
		"one wait fails":           {broken, judge.Deadlocks{Meals: 1, Circles: 1, Broken: 1}, true},
		"a release fails":          {broken + "2 failed 2 b", judge.Deadlocks{Meals: 1, Circles: 1, Broken: 1}, true},
		"both fail":                {pair + "2 failed 5 a, 1 failed 4 b", judge.Deadlocks{Circles: 1, Several: 1}, false},
		"none fails":               {pair + "1 kill given up, 2 granted 5 a", judge.Deadlocks{Circles: 1, GivenUp: 1, Meals: 1}, false},
		"a fault ends a process":   {broken + "3 acquire 6 b 3, 1 acquire 7 c 4, 1 kill", judge.Deadlocks{Circles: 2, Broken: 1, Lost: 1, Meals: 1}, true},
		"a member loses its lock":  {pair + "1 lost 1 a, 2 granted 5 a, 1 failed 4 b", judge.Deadlocks{Circles: 1, Lost: 1, Meals: 1}, false},
		"a victim of a loss":       {pair + "1 lost 1 a, 2 failed 5 a, 1 failed 4 b", judge.Deadlocks{Circles: 1, Lost: 1}, false},
		"a grant ends a circle":    {pair + "1 granted 4 b", judge.Deadlocks{Circles: 1, Granted: 1, Meals: 1}, false},
		"the history ends":         {pair, judge.Deadlocks{Circles: 1, Open: 1}, false},
		"a wait fails by itself":   {broken + "3 acquire 6 a 3, 3 failed 6 a", judge.Deadlocks{Meals: 1, Circles: 1, Broken: 1, False: 1}, false},
		"a first lock fails":       {broken + "3 acquire 6 a, 3 failed 6 a", judge.Deadlocks{Meals: 1, Circles: 1, Broken: 1, False: 1}, false},
		"waits that end too early": {hold + "1 acquire 4 b 1, 1 failed 4 b, 2 acquire 5 a 2, 2 failed 5 a", judge.Deadlocks{False: 2}, false},
		"three in a circle":        {hold + "1 acquire 4 b 1, 2 acquire 5 c 2, 3 acquire 6 a 3, 1 failed 4 b", judge.Deadlocks{Circles: 1, Broken: 1}, true},
		"two and one that waits":   {hold + "3 acquire 6 a 3, 1 acquire 4 b 1, 2 acquire 5 a 2, 3 failed 6 a, 1 failed 4 b", judge.Deadlocks{Circles: 1, Broken: 1, False: 1}, false},
		"a wait in two circles": {
			pair + "3 acquire 6 b 3, 2 failed 5 a, 2 release 2 b, 1 granted 4 b, 1 acquire 7 c 4, 3 failed 6 b",
			judge.Deadlocks{Circles: 2, Broken: 2, Meals: 1}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge.MeasureDeadlocks(journal(t, c.journal))
			times := got.Times
			got.Times = nil
			if fmt.Sprint(got) != fmt.Sprint(c.want) || got.Passed() != c.passed || len(times) != got.Broken+got.Several {
				t.Errorf("%+v, passed %v, times %v, want %+v, %v", got, got.Passed(), times, c.want, c.passed)
			}
		})
	}
	one := judge.MeasureDeadlocks(journal(t, broken))
	if one.Time(0.5) != "1s" || !strings.Contains(one.Table("toy"), "| of these, one wait failed                  |        1 |") {
		t.Errorf("p50 %s, and the table is\n%s", one.Time(0.5), one.Table("toy"))
	}
}

// journal reads a journal, an event a second: worker, kind, acquisition and name, and then what the client holds.
func journal(t *testing.T, text string) (events []history.Event) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(text, ", "), ", ") {
		e := history.Event{At: int64(len(events)+1) * int64(time.Second)}
		words := strings.Fields(line)
		e.Kind = history.Kind(words[1])
		scan := func(text string, to *int) {
			if _, err := fmt.Sscan(text, to); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		scan(words[0], &e.Worker)
		if e.Kind == history.Kill {
			e.Reason = strings.Join(words[2:], " ")
		} else {
			scan(words[2], &e.ID)
			e.Name = words[3]
			if len(words) > 4 && e.Kind == history.Acquire {
				scan(words[4], &e.Holding)
			}
		}
		events = append(events, e)
	}
	return events
}
