package place

import (
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

var stateNames = []string{opening: "opening", queued: "queued", held: "held", spent: "spent", reserved: "reserved", resumed: "resumed", leaving: "leaving", deleted: "deleted"}

// tableOfStates returns the moves in the table of placeState's doc comment.
func tableOfStates(t *testing.T) map[[2]placeState]bool {
	t.Helper()
	text, err := os.ReadFile("place_grant.go")
	if err != nil {
		t.Fatal(err)
	}
	byName := func(name string) placeState { return placeState(slices.Index(stateNames, name)) }
	moves := make(map[[2]placeState]bool)
	for _, row := range regexp.MustCompile(`(?m)^//\t(\w+) +(\w+) +\S`).FindAllStringSubmatch(string(text), -1) {
		from, to := row[1], row[2]
		switch {
		case from == "from":
		case byName(from) < 0 || byName(to) < 0:
			t.Fatalf("the table has a move from %q to %q, and one of them is not a state", from, to)
		default:
			moves[[2]placeState{byName(from), byName(to)}] = true
		}
	}
	return moves
}

// A place makes the moves of the table, and no others.
func TestPlaceMovesAsTheTableSays(t *testing.T) {
	moves := tableOfStates(t)
	if len(moves) < 10 {
		t.Fatalf("%d moves were found in the table, want at least 10", len(moves))
	}
	for from := range placeState(len(stateNames)) {
		for to := range placeState(len(stateNames)) {
			var l progress
			l.current.Store(int32(from))
			moved, want := l.moveLocked(to), moves[[2]placeState{from, to}]
			if moved != want {
				t.Errorf("from %s to %s: moved: %v, want %v", stateNames[from], stateNames[to], moved, want)
			}
			if is := l.state(); moved && is != to || !moved && is != from {
				t.Errorf("from %s to %s: moved: %v, and the state is %s", stateNames[from], stateNames[to], moved, stateNames[is])
			}
			if final := from >= leaving; final && moved {
				t.Errorf("a move leads from %s, which is final, to %s", stateNames[from], stateNames[to])
			}
		}
	}
	reached := map[placeState]bool{opening: true}
	for range stateNames {
		for move := range moves {
			if reached[move[0]] {
				reached[move[1]] = true
			}
		}
	}
	if len(reached) != len(stateNames) {
		t.Errorf("%d of %d states can be reached", len(reached), len(stateNames))
	}
}

// idleHold is a hold whose methods are never called.
type idleHold struct{ session.Dependent }

// A place has a hold if and only if its state is held, and none after it was given up.
func TestPlaceHasAHoldWhileItIsHeld(t *testing.T) {
	s := &session.Session{}
	p := &Place{Desk: &Desk{Session: s}}
	check := func(want placeState) {
		t.Helper()
		if is := p.progress.state(); is != want || (p.Holder() != nil) != (want == held) {
			t.Fatalf("the place is %s and its hold is %v, want %s", stateNames[is], p.Holder(), stateNames[want])
		}
	}
	hold := func() *idleHold { // Grant, without a lease
		h := &idleHold{}
		if !p.move(held) {
			t.Fatalf("a place that is %s cannot be held", stateNames[p.progress.state()])
		}
		p.hold, p.Granted = h, time.Now()
		return h
	}
	p.move(queued)
	check(queued)
	first := hold()
	check(held)
	p.EndHold(first)
	check(spent)
	p.Reserve()
	check(reserved)
	if p.move(held) {
		t.Error("a reserved place is held before the goroutine that it is reserved for has taken it up")
	}
	p.move(resumed)
	check(resumed)
	if !p.mustRequeue() {
		t.Error("a place that was taken up can be taken up again")
	}
	second := hold()
	p.EndHold(first) // too late: the second hold has the place
	check(held)
	p.EndHold(second)
	for range 2 {
		if err := p.giveUp(); err != nil {
			t.Error(err)
		}
		check(leaving)
		p.Reserve()
	}
	check(leaving)
}

// No delete is sent for a place that a hold has, neither to release it nor to replace it. The log says so.
func TestHeldPlaceIsNotDeleted(t *testing.T) {
	var logged strings.Builder
	cfg := &NodeSettings{}
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	p := &Place{Desk: &Desk{Session: &session.Session{}, Shared: NewShared(cfg)}, nodes: []*ownNode{{dir: "/locks/x", path: "/locks/x/n-1"}}}
	p.hold = &idleHold{}
	p.progress.current.Store(int32(held))
	w := p.Leave(t.Context())
	if <-w.Done; !errors.Is(w.Err, errHeld) || w.Sent() {
		t.Errorf("the delete of a held place: sent %v, error %v", w.Sent(), w.Err)
	}
	if err := p.finishDelete(w); !errors.Is(err, errHeld) {
		t.Errorf("the delete goes on: %v", err)
	}
	a := &Attempt{place: p}
	if replaced := a.yield(); replaced != nil || a.place != nil {
		t.Error("a new place replaces one that is held")
	}
	if p.progress.state() != held || p.Holder() == nil {
		t.Errorf("the place is %s, and its hold is %v", stateNames[p.progress.state()], p.Holder())
	}
	if text := logged.String(); strings.Count(text, "report this as a bug") != 2 || !strings.Contains(text, "n-1") || strings.Contains(text, "/locks") {
		t.Errorf("the log says %q", text)
	}
}
