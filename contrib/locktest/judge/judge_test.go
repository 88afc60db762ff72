package judge_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// both asks both judges and fails if they differ.
func both(t *testing.T, events []history.Event) judge.Verdict {
	t.Helper()
	holds := judge.Holds(events)
	v := judge.Plain(holds)
	o, known := judge.Porcupine(holds, 0)
	if !known || !o.Agrees(v) {
		t.Errorf("porcupine says %+v (known: %v), and the plain check says %+v, of this history:", o, known, v)
		if err := history.WriteTo(os.Stderr, events); err != nil {
			t.Error(err)
		}
		t.FailNow()
	}
	blamed := 0
	for _, n := range judge.Overlapped(events) {
		blamed += n
	}
	if blamed != v.Overlaps {
		t.Errorf("%d overlaps have a worker, of %d", blamed, v.Overlaps)
	}
	noted := 0
	for i, m := range judge.Mistakes(events) {
		noted += len(m.By)
		if m.String() == "" || i > 0 && m.At < judge.Mistakes(events)[i-1].At {
			t.Errorf("mistake %d is %v", i, m)
		}
		if drawn, err := judge.Explain(events, m.Hold.ID); err != nil || !strings.Contains(drawn, m.Hold.Name) {
			t.Errorf("the timeline of %v: %q, %v", m, drawn, err)
		}
	}
	if all := v.Overlaps + v.Fell + v.Lost + v.Refused + v.FencedOverlaps + v.FencedLost; noted != all {
		t.Errorf("%d mistakes are noted, of %d", noted, all)
	}
	return v
}

// TestOverlapped: an overlap belongs to the worker that still believed in its hold.
func TestOverlapped(t *testing.T) {
	events, err := history.ReadFrom(strings.NewReader(`{"at":1,"kind":"start","worker":1,"reason":"x"}
{"at":2,"kind":"start","worker":2,"reason":"y"}
{"at":3,"kind":"acquire","worker":1,"id":1,"name":"a"}
{"at":4,"kind":"granted","worker":1,"id":1,"name":"a"}
{"at":5,"kind":"acquire","worker":2,"id":2,"name":"a"}
{"at":6,"kind":"granted","worker":2,"id":2,"name":"a"}
{"at":7,"kind":"check","worker":2,"id":2,"name":"a"}
{"at":8,"kind":"held","worker":2,"id":2,"name":"a"}
{"at":9,"kind":"check","worker":1,"id":1,"name":"a"}
{"at":10,"kind":"held","worker":1,"id":1,"name":"a"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := judge.Overlapped(events); len(got) != 2 || got["x"] != 1 || got["y"] != 0 {
		t.Errorf("%v, want an overlap of x", got)
	}
}

// TestJudgesAgree: both judges pass histories that are right, refuse those with a mistake of each kind,
// and say the same of histories with up to four events moved at random.
func TestJudgesAgree(t *testing.T) {
	kinds := []struct {
		name  string
		make  mutation
		found func(judge.Verdict) int
	}{
		{"overlap", overlap, func(v judge.Verdict) int { return v.Overlaps }},
		{"lost update", lostUpdate, func(v judge.Verdict) int { return v.Lost }},
		{"falling token", fallingToken, func(v judge.Verdict) int { return v.Fell }},
		{"changed read", changedRead, func(v judge.Verdict) int { return v.Lost }},
		{"third permit", thirdPermit, func(v judge.Verdict) int { return v.Overlaps }},
	}
	made := make(map[string]int)
	for seed := range uint64(4000) {
		g := generate(rand.New(rand.NewPCG(seed, 1)))
		if v := both(t, g.events()); v != (judge.Verdict{}) {
			t.Fatalf("seed %d: a right history was judged %+v", seed, v)
		}
		kind := kinds[seed%5]
		if kind.make(g) {
			made[kind.name]++
			if v := both(t, g.events()); kind.found(v) == 0 {
				t.Fatalf("seed %d: a history with a mistake of the kind %s was judged %+v", seed, kind.name, v)
			}
		}
		g = generate(rand.New(rand.NewPCG(seed, 2)))
		for range 1 + g.rng.IntN(4) {
			anything(g)
		}
		if v := both(t, g.events()); v == (judge.Verdict{}) {
			made["moved, right"]++
		} else {
			made["moved, wrong"]++
		}
	}
	for _, kind := range []string{"overlap", "lost update", "falling token", "changed read", "third permit", "moved, right", "moved, wrong"} {
		if made[kind] < 100 {
			t.Errorf("only %d histories of the kind %s", made[kind], kind)
		}
	}
	t.Logf("%v", made)
}

// TestOverlapByHand: a history with two holders at a time, written by hand, is refused. The second one
// was granted, and the first one said held afterwards.
func TestOverlapByHand(t *testing.T) {
	const text = `{"at":1,"kind":"acquire","worker":1,"id":1,"name":"a"}
{"at":2,"kind":"granted","worker":1,"id":1,"name":"a","token":"5"}
{"at":3,"kind":"acquire","worker":2,"id":2,"name":"a"}
{"at":4,"kind":"granted","worker":2,"id":2,"name":"a","token":"6"}
{"at":5,"kind":"check","worker":1,"id":1,"name":"a"}
{"at":6,"kind":"held","worker":1,"id":1,"name":"a"}
`
	read := func(text string) []history.Event {
		events, err := history.ReadFrom(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	checked := text + `{"at":7,"kind":"check","worker":2,"id":2,"name":"a"}` + "\n" + `{"at":8,"kind":"held","worker":2,"id":2,"name":"a"}` + "\n"
	if v := both(t, read(checked)); v.Overlaps != 1 || v.Safe() {
		t.Errorf("judged %+v, want one overlap", v)
	}
	// If the check was sent before the grant, the first one may have answered before the grant, too.
	early := strings.NewReplacer(`{"at":4,`, `{"at":5,`, `{"at":5,`, `{"at":4,`).Replace(checked)
	lines := strings.Split(early, "\n")
	lines[3], lines[4] = lines[4], lines[3]
	if v := both(t, read(strings.Join(lines, "\n"))); !v.Safe() {
		t.Errorf("judged %+v, want nothing wrong", v)
	}
}

// TestExplainDrawsWaiters: a timeline has also an acquisition that was never granted, and one that waits for several names.
func TestExplainDrawsWaiters(t *testing.T) {
	events, err := history.ReadFrom(strings.NewReader(`{"at":1000000,"kind":"acquire","worker":1,"id":1,"name":"a"}
{"at":2000000,"kind":"granted","worker":1,"id":1,"name":"a"}
{"at":3000000,"kind":"acquire","worker":2,"id":2,"name":"a"}
{"at":4000000,"kind":"acquire","worker":3,"id":3,"name":"b"}
{"at":5000000,"kind":"acquire","worker":4,"id":4,"name":"b+a"}
{"at":6000000,"kind":"failed","worker":2,"id":2,"name":"a","reason":"timeout"}
{"at":7000000,"kind":"release","worker":1,"id":1,"name":"a"}
{"at":8000000,"kind":"released","worker":1,"id":1,"name":"a"}
`))
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := judge.Explain(events, 1)
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]bool{"a 1 (process 1)": true, "a 2 (process 2)": true, "b 3 (process 3)": false, "b+a 4 (process 4)": true} {
		if strings.Contains(drawn, row) != want {
			t.Errorf("a row %q: %v, want %v, in\n%s", row, !want, want, drawn)
		}
	}
}
