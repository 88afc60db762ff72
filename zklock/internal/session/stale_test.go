package session

import (
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

// What a watch has seen does not count any more once it has fired, even with
// nobody there to receive the event: a node of one's own that was deleted must not
// be taken for one that is there.
func TestWatchThatFiredUnheardIsStale(t *testing.T) {
	event := make(chan driver.Event, 1)
	w := &Watched{path: "/a", armed: make(chan struct{}), Gen: 7, Event: event}
	if w.stale(7) {
		t.Error("not armed yet, and stale")
	}
	close(w.armed)
	if w.stale(7) || !w.stale(8) {
		t.Error("it is good for the connection that it was armed on, and for no other")
	}
	event <- driver.Event{Type: driver.EventDeleted, Path: "/a"}
	close(event)
	if !w.stale(7) {
		t.Error("it has fired, and is not stale")
	}
	if e := w.fires(); e == nil || e.Type != driver.EventDeleted {
		t.Errorf("the event was lost: %v", e)
	}
}
