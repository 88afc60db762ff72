package place

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

var stateNames = []string{opening: "opening", queued: "queued", held: "held", spent: "spent", reserved: "reserved", resumed: "resumed", leaving: "leaving", deleted: "deleted"}

// tableOfStates reads the moves from the comment on state.
func tableOfStates(t *testing.T) map[[2]state]bool {
	t.Helper()
	text, err := os.ReadFile("place_state.go")
	if err != nil {
		t.Fatal(err)
	}
	byName := func(name string) state { return state(slices.Index(stateNames, name)) }
	moves := make(map[[2]state]bool)
	for _, row := range regexp.MustCompile(`(?m)^//\t(\w+) +(\w+) +\S`).FindAllStringSubmatch(string(text), -1) {
		from, to := row[1], row[2]
		switch {
		case from == "from":
		case byName(from) < 0 || byName(to) < 0:
			t.Fatalf("the table has a move from %q to %q", from, to)
		default:
			moves[[2]state{byName(from), byName(to)}] = true
		}
	}
	return moves
}

// A place goes from state to state as the table says, and in no other way.
func TestPlaceMovesAsTheTableSays(t *testing.T) {
	moves := tableOfStates(t)
	if len(moves) < 10 {
		t.Fatalf("the table has %d moves", len(moves))
	}
	for from := range state(len(stateNames)) {
		for to := range state(len(stateNames)) {
			var l life
			l.now.Store(int32(from))
			moved, want := l.moveLocked(to), moves[[2]state{from, to}]
			if moved != want {
				t.Errorf("from %s to %s: moved: %v, want %v", stateNames[from], stateNames[to], moved, want)
			}
			if is := l.is(); moved && is != to || !moved && is != from {
				t.Errorf("from %s to %s: it is %s", stateNames[from], stateNames[to], stateNames[is])
			}
			if final := from >= leaving; final && moved {
				t.Errorf("%s leads to %s, and is final", stateNames[from], stateNames[to])
			}
		}
	}
	reached := map[state]bool{opening: true}
	for range stateNames {
		for move := range moves {
			if reached[move[0]] {
				reached[move[1]] = true
			}
		}
	}
	if len(reached) != len(stateNames) {
		t.Errorf("of %d states %d can be reached", len(stateNames), len(reached))
	}
}

// tenant is a hold that nothing happens to.
type tenant struct{ session.Tenant }

// A place has a hold if and only if it is held, and none once it is given up.
func TestPlaceHasAHoldWhileItIsHeld(t *testing.T) {
	s := &session.Session{Tenants: make(map[session.Tenant]struct{})}
	p := &Place{Desk: &Desk{Session: s}}
	check := func(want state) {
		t.Helper()
		if is := p.life.is(); is != want || (p.Holder() != nil) != (want == held) {
			t.Fatalf("it is %s and has %v, want %s", stateNames[is], p.Holder(), stateNames[want])
		}
	}
	hold := func() *tenant { // Grant, without a lease
		h := &tenant{}
		if !p.move(held) {
			t.Fatalf("%s cannot be held", stateNames[p.life.is()])
		}
		p.hold, p.Granted = h, time.Now()
		return h
	}
	p.move(queued)
	check(queued)
	first := hold()
	check(held)
	p.Over(first)
	check(spent)
	p.Reserve()
	check(reserved)
	if p.move(held) {
		t.Error("a reserved place is held before the one it is reserved for has taken it up")
	}
	p.move(resumed)
	check(resumed)
	if !p.worn() {
		t.Error("a place is taken up twice")
	}
	second := hold()
	p.Over(first) // late: another one has the place
	check(held)
	p.Over(second)
	p.giveUp()
	check(leaving)
	p.Reserve()
	p.giveUp()
	check(leaving)
}
