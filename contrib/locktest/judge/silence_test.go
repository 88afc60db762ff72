package judge_test

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestMeasureSilence: what was held at the fault and lost in it, the session that takes the place of another one, and the longest
// wait: of an acquisition, between two grants, or without an answer.
func TestMeasureSilence(t *testing.T) {
	second := func(s float64) int64 { return int64(s * float64(time.Second)) }
	events := func(more ...history.Event) []history.Event {
		return append([]history.Event{
			{At: second(1), Kind: history.Session, Reason: "0x1"},
			{At: second(2), Kind: history.Acquire, ID: 1, Name: "a"},
			{At: second(3), Kind: history.Granted, ID: 1, Name: "a"},
			{At: second(3.1), Kind: history.Acquire, ID: 2, Name: "b"},
			{At: second(9), Kind: history.Granted, ID: 2, Name: "b"}, // a long wait before the fault
			{At: second(10), Kind: history.Acquire, ID: 3, Name: "c"},
			{At: second(11), Kind: history.Fault},
		}, more...)
	}
	calm := history.Event{At: second(21), Kind: history.Calm}
	for what, c := range map[string]struct {
		events []history.Event
		want   judge.Silence
	}{
		"nothing lost, a wait from grant to grant": {
			events(
				history.Event{At: second(12), Kind: history.Session, Reason: "0x1"},
				history.Event{At: second(12.5), Kind: history.Granted, ID: 3, Name: "c"},
				history.Event{At: second(18), Kind: history.Acquire, ID: 4, Name: "c"},
				history.Event{At: second(19), Kind: history.Granted, ID: 4, Name: "c"},
				history.Event{At: second(20), Kind: history.Healed}, calm,
				history.Event{At: second(41), Kind: history.Lost, ID: 1, Name: "a"}, // the process ends
			),
			judge.Silence{Held: 2, Longest: 6500 * time.Millisecond},
		},
		"lost, with a failure and a new session": {
			events(
				history.Event{At: second(13), Kind: history.Lost, ID: 1, Name: "a"},
				history.Event{At: second(13.5), Kind: history.Lost, ID: 1, Name: "a"},
				history.Event{At: second(14), Kind: history.Failed, ID: 3, Name: "c"},
				history.Event{At: second(14), Kind: history.Session, Reason: "0x2"},
				history.Event{At: second(14.1), Kind: history.Acquire, ID: 4, Name: "c"},
				history.Event{At: second(16), Kind: history.Granted, ID: 4, Name: "c"},
				history.Event{At: second(20), Kind: history.Healed},
				history.Event{At: second(20.1), Kind: history.Acquire, ID: 5, Name: "c"},
				history.Event{At: second(20.2), Kind: history.Failed, ID: 5, Name: "c"}, calm,
			),
			judge.Silence{Held: 2, Lost: 1, Sessions: 1, Failed: 1, Longest: 7 * time.Second},
		},
		"no answer":     {events(history.Event{At: second(20), Kind: history.Healed}, calm), judge.Silence{Held: 2, Longest: 12 * time.Second}},
		"without fault": {[]history.Event{{At: 1, Kind: history.Acquire, ID: 1}, {At: second(5), Kind: history.Granted, ID: 1}, calm}, judge.Silence{}},
	} {
		if got := judge.MeasureSilence(c.events); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
	sum := judge.Silence{Held: 2, Lost: 1, Sessions: 3, Failed: 4, Longest: time.Second}
	sum.Add(judge.Silence{Held: 1, Lost: 1, Longest: 2 * time.Second})
	if want := (judge.Silence{Held: 3, Lost: 2, Sessions: 3, Failed: 4, Longest: 2 * time.Second}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}
