package place

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A client lists the held places whose own nodes it will soon watch (due). After a burst of many
// held places, it removes places that have left from that list as early as before the burst.
func TestDueShrinksAfterABurst(t *testing.T) {
	const many = 100_000
	own := &WatchedDesk{Desk: &Desk{Session: session.Inert(t.Context(), identified{timeout: 30 * time.Second})}, added: make(chan struct{}, 1)}
	add := func(granted time.Time) *Place {
		p := &Place{Desk: own.Desk}
		p.Granted = granted
		p.progress.current.Store(int32(held))
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
		add(time.Now()).progress.current.Store(int32(leaving))
		most = max(most, len(own.due))
	}
	if most > 2*minSweep {
		t.Errorf("%d places that have left are among the due ones", most)
	}
}
