package judge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestSuccessionsLeaveOut: what measures nothing has no time.
func TestSuccessionsLeaveOut(t *testing.T) {
	granted := func(at int64, worker int, name string) history.Event {
		return history.Event{At: at, Kind: history.Granted, Worker: worker, ID: int(at), Name: name}
	}
	killed := func(at int64, worker int, reason string) history.Event {
		return history.Event{At: at, Kind: history.Kill, Worker: worker, Reason: reason}
	}
	for _, c := range []struct {
		what   string
		events []history.Event
		want   []time.Duration
	}{
		{"two names, in rising order", []history.Event{granted(1, 1, "a"), granted(2, 2, "b"), killed(3, 1, history.HolderKilled), killed(4, 2, history.HolderKilled), granted(5, 3, "b"), granted(9, 4, "a")}, []time.Duration{1, 6}},
		{"another kill", []history.Event{granted(1, 1, "a"), killed(2, 1, ""), granted(3, 2, "a")}, nil},
		{"another name", []history.Event{granted(1, 1, "a"), killed(2, 1, history.HolderKilled), granted(3, 2, "b")}, nil},
		{"no holder", []history.Event{granted(1, 1, "a"), killed(2, 3, history.HolderKilled), granted(3, 2, "a")}, nil},
		{"a grant before the kill", []history.Event{granted(1, 1, "a"), granted(2, 2, "a"), killed(3, 1, history.HolderKilled), granted(4, 3, "a")}, nil},
	} {
		if got := judge.Successions(c.events); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
