package session

import (
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

// The data that a watch has read is out of date once the watch has fired, even if no
// goroutine received the event: a client must not take its own deleted node for one that
// exists.
func TestWatchThatFiredUnheardIsStale(t *testing.T) {
	event := make(chan driver.Event, 1)
	w := &Watched{key: watchKey{path: "/a"}, Gen: 7, Event: event}
	if w.stale(7) {
		t.Error("a watch that is not armed yet is stale")
	}
	w.armed.Store(true)
	if w.stale(7) || !w.stale(8) {
		t.Error("a watch must be usable on the connection on which it was armed, and on no other")
	}
	event <- driver.Event{Type: driver.EventDeleted, Path: "/a"}
	close(event)
	if !w.stale(7) {
		t.Error("a watch that has fired is not stale")
	}
	if e := w.Fires(); e == nil || e.Type != driver.EventDeleted {
		t.Errorf("the event was lost: %v", e)
	}
}
