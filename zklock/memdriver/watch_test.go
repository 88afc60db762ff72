package memdriver_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestWatchesThatAreSetAgainTakeNoMoreMemory: package zkdriver has the same test.
func TestWatchesThatAreSetAgainTakeNoMoreMemory(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		const nodes, reconnects = 20, 50
		s := connect(t, e.Connector(), 10*time.Second)
		for i := range nodes {
			create(t, s, "/"+strconv.Itoa(i), driver.Persistent)
		}
		for n := range uint64(reconnects) {
			for i := range nodes {
				if _, _, err := s.Watch(t.Context(), "/"+strconv.Itoa(i)); err != nil {
					t.Fatal(err)
				}
				if _, _, _, err := s.WatchChildren(t.Context(), "/"+strconv.Itoa(i)); err != nil {
					t.Fatal(err)
				}
				if _, _, _, err := s.WatchExists(t.Context(), "/missing-"+strconv.Itoa(i)); err != nil {
					t.Fatal(err)
				}
			}
			if got := memdriver.WatchChannels(s); got != 3*nodes {
				t.Fatalf("after %d reconnects %d channels wait for events of three watches on each of %d nodes", n, got, nodes)
			}
			if got := e.WatchCount(); got != 3*nodes {
				t.Fatalf("after %d reconnects %d watches are armed, want three for each of %d nodes", n, got, nodes)
			}
			_, changed := s.State()
			e.KillConnection(s.ID())
			for gen, _ := s.Conn(); gen != n+2; gen, _ = s.Conn() {
				<-changed
				_, changed = s.State()
			}
		}
	})
}
