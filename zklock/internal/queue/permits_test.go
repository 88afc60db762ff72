package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Holders says of each contender what Decide says, in random queues of all kinds, with clients that look and others.
func TestHoldersAgreesWithDecide(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 0))
	kinds := []Kind{{Mode: Exclusive}, {Mode: Shared}, {Mode: Permit, Permits: 1}, {Mode: Permit, Permits: 2}, {Mode: Permit, Permits: 3}, {Mode: Permit, Permits: 7}}
	holders := 0
	for range 20_000 {
		q, first := make([]Node, rng.IntN(12)), rng.IntN(3)
		for i := range q {
			q[i] = Node{Name: fmt.Sprint(i), Seq: int64(i), Kind: kinds[first+rng.IntN(len(kinds)-first)], GUID: GUID{Session: 1, Serial: 1}}
			if rng.IntN(2) == 0 {
				q[i].GUID = q[i].GUID.Looking()
			}
		}
		for i, held := range Holders(q) {
			if want, _ := Decide(q, i, 1); held != want {
				t.Fatalf("contender %d of %+v: %v, want %v", i, q, held, want)
			}
			if held {
				holders++
			}
		}
	}
	if holders < 20_000 {
		t.Errorf("%d holders only", holders)
	}
}

// The first in line, behind many holders, watches as few of them as it needs.
func TestWaiterForFewerPermitsWatchesFew(t *testing.T) {
	q := make([]Node, 200)
	for i := range q {
		q[i] = Node{Name: fmt.Sprint(i), Seq: int64(i), Kind: Kind{Mode: Permit, Permits: 200}, GUID: GUID{Session: 1, Serial: 1}.Looking()}
	}
	for _, number := range []int{1, 5, 199} {
		q[199].Kind.Permits = number
		if held, watch := Decide(q, 199, 1); held || len(watch.On) != number {
			t.Errorf("one for %d behind 199 holders: %v, watches %v", number, held, watch)
		}
	}
}
