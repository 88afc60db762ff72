package election

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// The leader is the exclusive holder, the first if there are some of several dialects.
func TestLeaderOf(t *testing.T) {
	held := func(zxid int64, foreign bool) zklock.Contender {
		return zklock.Contender{Zxid: zxid, Held: true, Foreign: foreign, Mode: zklock.Exclusive}
	}
	for _, c := range []struct {
		what string
		in   []zklock.Contender
		want int64
	}{
		{"no leader", nil, 0},
		{"a candidate that waits", []zklock.Contender{{Zxid: 1, Mode: zklock.Exclusive}}, 0},
		{"the first", []zklock.Contender{held(1, false), {Zxid: 2}}, 1},
		{"a reader", []zklock.Contender{{Zxid: 1, Held: true, Mode: zklock.Shared}, {Zxid: 2}}, 0},
		{"a permit", []zklock.Contender{{Zxid: 1, Held: true, Mode: zklock.Permit}}, 0},
		{"another library", []zklock.Contender{held(1, true), {Zxid: 2}}, 1},
		{"two other dialects", []zklock.Contender{held(1, true), held(2, true)}, 1},
		{"another dialect before", []zklock.Contender{held(1, true), held(2, false)}, 1},
		{"another dialect after", []zklock.Contender{held(1, false), held(2, true)}, 1},
	} {
		l, ok := leaderOf(c.in)
		if ok != (c.want != 0) || l.Token.Zxid != c.want {
			t.Errorf("%s: leader %+v, %v, want the zxid %d", c.what, l, ok, c.want)
		}
	}
}

// The default of a value is what the identity has.
func TestDescribe(t *testing.T) {
	for want, c := range map[string]zklock.Contender{
		"web-3/812": {Host: "web-3", PID: 812},
		"/812":      {PID: 812},
		"web-3/0":   {Host: "web-3"},
		"":          {},
		"v":         {Host: "web-3", PID: 812, Label: "v"},
	} {
		if got := describe(c).Value; got != want {
			t.Errorf("%+v has the value %q, want %q", c, got, want)
		}
	}
}

// A token that falls ends an observer, because its ensemble was restored.
func TestObserverRefusesTokensThatFall(t *testing.T) {
	o := observer{election: New(nil, "x")}
	see := func(zxid int64) error {
		_, _, err := o.see([]zklock.Contender{{Zxid: zxid, Held: true, Mode: zklock.Exclusive}})
		return err
	}
	if err := errors.Join(see(5), see(5), see(7)); err != nil {
		t.Errorf("tokens that rise: %v", err)
	}
	if _, changed, err := o.see(nil); !changed || !errors.Is(err, ErrNoLeader) {
		t.Errorf("an empty queue: %v, %v, want %v", changed, err, ErrNoLeader)
	}
	if err := see(6); !errors.Is(err, zklock.ErrBadEnsemble) {
		t.Errorf("the token 6 after 7: %v, want %v", err, zklock.ErrBadEnsemble)
	}
}

// A leader of another dialect whose node cannot be read has no token. It ends no observer, and
// is not reported as a leader.
func TestObserverOfALeaderThatCannotBeRead(t *testing.T) {
	o := observer{election: New(nil, "x")}
	see := func(zxid int64) (bool, error) {
		_, changed, err := o.see([]zklock.Contender{{Node: "n", Zxid: zxid, Held: true, Mode: zklock.Exclusive}})
		return changed, err
	}
	for _, zxid := range []int64{5, 7} {
		if changed, err := see(zxid); !changed || err != nil {
			t.Errorf("the token %d: %v, %v", zxid, changed, err)
		}
		if changed, err := see(0); !changed || !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNoAuth) || errors.Is(err, zklock.ErrBadEnsemble) {
			t.Errorf("a leader that cannot be read: %v, %v", changed, err)
		}
	}
}

// A candidate of this dialect meets a leader of another one. The candidate is at the front of its
// own recipe's queue for a moment, and then gives up. The leader does not change, and the observer
// goes on.
func TestObserverGoesOnAfterAConflict(t *testing.T) {
	o := observer{election: New(nil, "x")}
	foreign := zklock.Contender{Zxid: 5, Held: true, Foreign: true, Mode: zklock.Exclusive}
	ours := zklock.Contender{Zxid: 7, Held: true, Mode: zklock.Exclusive}
	for i, queue := range [][]zklock.Contender{{foreign}, {foreign, ours}, {foreign}} {
		if now, changed, err := o.see(queue); err != nil || now.Token.Zxid != 5 || changed != (i == 0) {
			t.Errorf("look %d: %+v, %v, %v, want the token 5 once", i, now, changed, err)
		}
	}
}

// Pauses double up to a limit, and start again after a term that was not short.
func TestBackoff(t *testing.T) {
	var b backoff
	const s = time.Second
	for i, want := range []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s} {
		if got := b.next(true); got != want {
			t.Errorf("pause %d after a short term: %v, want %v", i, got, want)
		}
	}
	if got := b.next(false); got != s {
		t.Errorf("pause after a long term: %v, want %v", got, s)
	}
	if got := b.next(true); got != 2*s {
		t.Errorf("pause after another short term: %v, want %v", got, 2*s)
	}
}

func TestCheckValue(t *testing.T) {
	for _, ok := range []string{"", "10.0.0.7:8080", strings.Repeat("x", 256), strings.Repeat(`"`, 128), strings.Repeat("é", 128)} {
		if err := checkValue(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{strings.Repeat("x", 257), strings.Repeat(`"`, 129), strings.Repeat("<", 43), "\xff"} {
		if err := checkValue(bad); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("%q: %v, want %v", bad, err, zklock.ErrConflict)
		}
	}
}
