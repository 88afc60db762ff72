package place

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// After many places were held at once, those that have left are removed from the due ones as early
// as before.
func TestDueShrinksAfterABurst(t *testing.T) {
	const many = 100_000
	own := &ownWatches{Desk: &Desk{Session: &session.Session{Timeout: 30 * time.Second}}, added: make(chan struct{}, 1)}
	add := func(granted time.Time) *Place {
		p := &Place{Desk: own.Desk}
		p.Granted = granted
		p.life.current.Store(int32(held))
		own.mu.Lock()
		defer own.mu.Unlock()
		own.addLocked(p)
		return p
	}
	for range many { // held together, and due by now
		add(time.Now().Add(-time.Minute))
	}
	for p, _ := own.next(); p != nil; p, _ = own.next() {
	}
	most := 0
	for range many {
		add(time.Now()).life.current.Store(int32(leaving))
		most = max(most, len(own.due))
	}
	if most > 2*minSweep {
		t.Errorf("%d places that have left are among the due ones", most)
	}
}
