package local

import (
	"container/list"
	"testing"
)

// An agent that is about to grant a place to a ticket has reserved it, and no other one gets that ticket.
func TestReservedTicketIsNotNext(t *testing.T) {
	var l list.List
	var p patience
	all := func(*ticket) bool { return true }
	first, second := &ticket{r: &Request{}, patience: &p}, &ticket{r: &Request{}, patience: &p}
	l.PushBack(first)
	l.PushBack(second)
	for _, want := range []*ticket{first, second, nil} {
		got := nextOf(&l, false, all)
		if got != want {
			t.Fatalf("next is %p, want %p of %p and %p", got, want, first, second)
		}
		if got != nil {
			got.reserved = true
		}
	}
}
