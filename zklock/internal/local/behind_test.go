package local

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// modesBehind is modesAhead for one request of a queue, by its meaning: it goes from the request to the front.
func modesBehind(requests []*Request, at int) queue.Modes {
	set := queue.ModesOf(requests[at].Mode)
	for _, o := range slices.Backward(requests[:at]) {
		if !o.Try && set.Exclude(o.Mode) {
			set |= queue.ModesOf(o.Mode)
		}
	}
	return set
}

func randomRequests(r *rand.Rand, n int) (all []*Request) {
	for range n {
		q := &Request{}
		q.Mode, q.Try = queue.Mode(1+r.IntN(3)), r.IntN(4) == 0
		all = append(all, q)
	}
	return all
}

func TestModesAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		requests := randomRequests(r, 1+r.IntN(8))
		at := 0
		for q, got := range modesAhead(slices.Values(requests)) {
			if want := modesBehind(requests, at); q != requests[at] || got != want {
				t.Fatalf("request %d of %v: %b, want %b", at, requests, got, want)
			}
			at++
		}
		if at != len(requests) {
			t.Fatalf("%d requests, want %d", at, len(requests))
		}
	}
}

// TestBehindVisitsEachRequestOnce counts the requests that are visited for all waits of one name.
func TestBehindVisitsEachRequestOnce(t *testing.T) {
	const waits = 10_000
	q := &Queue{current: &Hold{over: true}}
	of := make(map[*Request]int)
	for i, r := range randomRequests(rand.New(rand.NewPCG(7, 8)), waits) {
		q.waiters.PushBack(newTicket(r))
		of[r] = i
	}
	visited := 0
	q.behind(func(yield func(*Request) bool) {
		q.requestsLocked(func(r *Request) bool {
			visited++
			return yield(r)
		})
	}, of, make([][]Behind, waits))
	if visited != waits {
		t.Errorf("%d requests were visited, want %d", visited, waits)
	}
}
