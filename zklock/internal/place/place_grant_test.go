package place

import (
	"math"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A writer that was downgraded may be released before its local queue learns of the
// downgrade. A writer that waits there must not get the node then: readers
// of other processes may hold the lock.
func TestDowngradedPlaceIsPassedOnToReadersOnly(t *testing.T) {
	desk := &Desk{Session: &session.Session{}}
	p := &Place{Desk: desk, nodes: []*ownNode{{kind: queue.Kind{Mode: queue.Exclusive}}}}
	p.Granted = time.Now()
	mayPass := func(m queue.Mode) bool { return p.Handover().MayPass(m, 10, time.Hour) }
	if !mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a writer's place cannot be handed over to writers and readers")
	}
	if p.Lower(&idleHold{}) || !mayPass(queue.Exclusive) {
		t.Error("the downgrade of a hold that is over changes a place that another one may have")
	}
	h := &idleHold{}
	p.hold = h
	if !p.Lower(h) {
		t.Fatal("a writer's place was not lowered for its hold")
	}
	if mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a downgraded place can be handed over to writers, or cannot be to readers")
	}
}

// A token's turn must not begin again at 0, which it would after 2^32 holders of a place.
func TestTurnsEnd(t *testing.T) {
	desk := &Desk{Session: &session.Session{}}
	p := &Place{Desk: desk, nodes: []*ownNode{{kind: queue.Kind{Mode: queue.Exclusive}}}}
	p.Granted, p.keepable, p.opened = time.Now(), true, true
	p.progress.current.Store(int32(spent))
	p.turn = lastTurn - 1
	if !p.Handover().MayPass(queue.Exclusive, 10, time.Hour) {
		t.Error("a place with turns left cannot be handed over")
	}
	p.turn = lastTurn
	if p.Handover().MayPass(queue.Exclusive, 10, time.Hour) {
		t.Error("a place can be handed over after its last turn")
	}
	if p.Handover().MayBeKept() {
		t.Error("a place is kept after its last turn")
	}
}

// holder is a hold with callers, whose origin is read in between other steps.
type holder struct {
	session.Dependent
	origin func() Origin
}

func (h *holder) Origin() Origin               { return h.origin() }
func (h *holder) RecallHandler() RecallHandler { return nil }

// A Downgrade takes a turn of its own, while a place has turns, and only for the hold that has the place.
func TestTurnsOfDowngradesEnd(t *testing.T) {
	h := &idleHold{}
	p := &Place{Desk: &Desk{Session: &session.Session{}}}
	p.hold, p.turn = h, math.MaxUint32-1
	if turn, ok := p.Advance(h); !ok || turn != math.MaxUint32-1 {
		t.Errorf("the last turn is %d, %t", turn, ok)
	}
	if turn, ok := p.Advance(h); ok {
		t.Errorf("there is another turn after the last: %d, and then %d", turn, p.turn)
	}
}

// The holder's Downgrade between the two reads of Describe and Relabel does not keep them from writing
// what others read of it.
func TestDescriptionDuringADowngrade(t *testing.T) {
	p := &Place{Desk: &Desk{Session: &session.Session{}}, nodes: []*ownNode{{kind: queue.Kind{Mode: queue.Exclusive}}}}
	h := &holder{}
	h.origin = func() Origin { p.Advance(h); return Origin{Label: "second"} }
	p.hold, p.turn, p.dataTurn = h, 2, 1 // the data describe the first holder
	d := queue.Data{Label: "first"}
	if p.describe(&d, nil); d.Label != "second" {
		t.Errorf("Describe leaves the label %q", d.Label)
	}
	p.turn, p.dataTurn = 2, 1
	d = queue.Data{Label: "first", Trace: "trace of the first"}
	if p.Relabel(&d); d.Label != "second" || d.Trace != "" {
		t.Errorf("Relabel leaves the label %q with the trace %q", d.Label, d.Trace)
	}
}
