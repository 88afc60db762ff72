package session

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Contenders that one transaction creates below one znode would have equal tokens, so a
// group has one of them. And a create's count of children must not include nodes that the
// same transaction deletes.
func TestGroupHasOneCreateOfANameAndDeletesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		for _, w := range []*Write{creation("/x", "1"), creation("/x", "2"), creation("/y", "1"), removal("/x/old")} {
			c.Submit(w)
		}
		synctest.Wait()
		if len(flights) != 0 {
			t.Fatal("a transaction was sent while the maximum was under way")
		}
		land()
		for _, want := range [][]string{{"/x/old", "/x/1", "/y/1"}, {"/x/2"}} {
			select {
			case f := <-flights:
				if got := paths(f); !slices.Equal(got, want) {
					t.Errorf("the group has %v, want %v", got, want)
				}
				f.answer <- nil
				synctest.Wait()
			default:
				t.Fatalf("no group was sent, want %v", want)
			}
		}
		wg.Wait()
		if len(flights) != 0 {
			t.Errorf("one group too many: %v", paths(<-flights))
		}
	})
}

// Creates below one znode share no group, and do not wait for each other's answers: far away servers would carry one in a round
// trip. Other writes go with one of them, or wait for a landing.
func TestCreatesOfANameDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		const more = 5
		for i := range maxCreates + more {
			c.Submit(creation("/x", strconv.Itoa(i)))
			if i%2 == 0 {
				synctest.Wait() // two come at once
			}
		}
		c.Submit(removal("/x/old"))
		synctest.Wait()
		if len(flights) != maxCreates {
			t.Fatalf("%d transactions are under way, want %d", len(flights), maxCreates)
		}
		sent := 0
		for ; len(flights) > 0; sent++ {
			f := <-flights
			if got := paths(f); sent < maxCreates && len(got) != 1 || sent == maxCreates && len(got) != 2 {
				t.Errorf("transaction %d has %v, want a create of its own, and behind the limit the delete with it", sent, got)
			}
			f.answer <- nil
			synctest.Wait()
		}
		wg.Wait()
		if sent != maxCreates+more || c.flights != 0 || len(c.creating) != 0 {
			t.Errorf("%d transactions, %d under way, which create %q; want %d, and none under way", sent, c.flights, c.creating, maxCreates+more)
		}
		for range maxFlights + 1 { // as before
			c.Submit(creation("/"+strconv.Itoa(sent), "1"))
			sent++
		}
		synctest.Wait()
		if len(flights) > maxFlights {
			t.Errorf("%d transactions of other names are under way, want %d", len(flights), maxFlights)
		}
		for len(flights) > 0 {
			(<-flights).answer <- nil
			synctest.Wait()
		}
		wg.Wait()
	})
}

// No write waits for a timer: a lone write is sent at once. Writes that arrive while the
// maximum of transactions is under way go with the next one.
func TestLoneWriteGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		for i := range maxFlights + 2 {
			c.Submit(removal("/x/old"))
			synctest.Wait() // no time passes: a timer would not have fired
			if want := min(i+1, maxFlights); len(flights) != want {
				t.Fatalf("%d transactions after %d writes, want %d", len(flights), i+1, want)
			}
		}
		for range maxFlights {
			(<-flights).answer <- nil
			synctest.Wait()
		}
		f := <-flights
		if got := paths(f); len(got) != 2 {
			t.Errorf("the next group has %v, want both writes that waited", got)
		}
		f.answer <- nil
		wg.Wait()
		if len(flights) != 0 {
			t.Errorf("one group too many: %v", paths(<-flights))
		}
	})
}

// A write that is sent apart does not wait for the transactions under way and shares none. The
// limit on lone requests under way (committer.lone) is also the limit on such writes. Each is
// settled once.
func TestWriteApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		c.lone = make(chan struct{}, 2)
		land := busy(t, c, flights)
		writes := []*Write{creation("/x", "1"), creation("/y", "1"), creation("/z", "1")}
		for _, w := range writes {
			w.Risky = true
			c.Submit(w)
		}
		synctest.Wait()
		for _, want := range []int{2, 2, 1} {
			if len(flights) != want {
				t.Fatalf("%d transactions are under way, want %d", len(flights), want)
			}
			f := <-flights
			if got := paths(f); len(got) != 1 {
				t.Errorf("a transaction has %v, want one write", got)
			}
			f.answer <- nil
			synctest.Wait()
		}
		land()
		wg.Wait()
		for _, w := range writes {
			if <-w.Done; w.Err != nil {
				t.Error(w.Err)
			}
			if e, ok := w.Creates.(*entry); ok && *e != 1 {
				t.Errorf("%s was settled %d times", w.Ops[0].Path, *e)
			}
		}
		c.close()
		refused := creation("/x", "2")
		if c.Submit(refused); !errors.Is(refused.Err, driver.ErrClosed) {
			t.Errorf("after close: %v, want ErrClosed", refused.Err)
		}
	})
}

// A risky member makes its group fail. Then the other risky members leave the group, and go in
// transactions of their own; the rest is sent again once.
func TestRiskyWritesLeaveAGroupThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "/x/gone")
		c.lone = make(chan struct{}, 2)
		land := busy(t, c, flights)
		var writes []*Write
		joins := make(chan struct{})
		close(joins)
		for _, w := range []*Write{removal("/x/gone"), creation("/y", "new"), removal("/x/gone"), creation("/z", "new"), removal("/x/gone")} {
			w.Risky, w.Joins = w.Creates == nil, joins
			c.Submit(w)
			writes = append(writes, w)
		}
		land()
		(<-flights).answer <- nil
		synctest.Wait()
		var sent []string
		for under := len(flights); under > 0; under-- {
			f := <-flights
			sent = append(sent, strings.Join(paths(f), " "))
			f.answer <- nil
			synctest.Wait()
		}
		if slices.Sort(sent); !slices.Equal(sent, []string{"/x/gone", "/x/gone", "/y/new /z/new"}) || len(flights) != 0 {
			t.Errorf("sent %q at the same time and %d more, want the rest of the group and two risky writes", sent, len(flights))
		}
		wg.Wait()
		for i, w := range writes {
			if <-w.Done; (w.Err != nil) != w.Risky || len(w.Results) != 1 {
				t.Errorf("write %d: %v, %d results", i, w.Err, len(w.Results))
			}
			if e, ok := w.Creates.(*entry); ok && *e != 1 {
				t.Errorf("write %d was settled %d times", i, *e)
			}
		}
	})
}

// A write that is given up before it is sent is not sent, whether it waits to be sent apart or in a group. One
// that was sent is answered as usual, and the writes of others are sent.
func TestWritesThatWereGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		c.lone = make(chan struct{}, 1)
		first, second := creation("/x", "1"), creation("/y", "1")
		first.Risky, second.Risky = true, true
		c.Submit(first)
		synctest.Wait()
		c.Submit(second)
		synctest.Wait()
		first.GiveUp()
		second.GiveUp()
		if <-second.Done; !errors.Is(second.Err, driver.ErrNotSent) || len(flights) != 1 {
			t.Errorf("the second write: %v, with %d transactions under way; want ErrNotSent and one", second.Err, len(flights))
		}
		(<-flights).answer <- nil
		if <-first.Done; first.Err != nil {
			t.Errorf("the first write: %v", first.Err)
		}
		wg.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		gone, stays, left := creation("/x", "gone"), creation("/x", "stays"), creation("/y", "left")
		for _, w := range []*Write{gone, stays, left} {
			c.Submit(w)
		}
		gone.GiveUp()
		left.GiveUp()
		land()
		f := <-flights
		if got := paths(f); !slices.Equal(got, []string{"/x/stays"}) {
			t.Errorf("sent %v, want the one write that was not given up", got)
		}
		f.answer <- nil
		wg.Wait()
		for w, want := range map[*Write]error{gone: driver.ErrNotSent, left: driver.ErrNotSent, stays: nil} {
			if <-w.Done; !errors.Is(w.Err, want) || len(flights) != 0 {
				t.Errorf("%s: %v, want %v; %d more transactions", w.Ops[0].Path, w.Err, want, len(flights))
			}
		}
	})
}

// A group never exceeds maxGroupBytes, 500 of which fit into a small server's heap. A single write that is larger is sent alone.
func TestGroupHasASize(t *testing.T) {
	if kept := 500 * maxGroupBytes; kept > 32<<20 {
		t.Errorf("a server keeps up to %d bytes of transactions in memory, want 32 MiB at most", kept)
	}
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		for i, bytes := range []int{maxGroupBytes * 2 / 5, maxGroupBytes * 2 / 5, maxGroupBytes * 2 / 5, 2 * maxGroupBytes, 1} {
			w := creation("/"+strconv.Itoa(i), "n")
			w.Ops[0].Data = make([]byte, bytes)
			c.Submit(w)
		}
		land()
		var got [][]string
		for range 4 {
			f := <-flights
			got = append(got, paths(f))
			f.answer <- nil
			synctest.Wait() // else two groups could be sent at once, in any order
		}
		wg.Wait()
		if want := [][]string{{"/0/n", "/1/n"}, {"/2/n"}, {"/3/n"}, {"/4/n"}}; !slices.EqualFunc(got, want, slices.Equal) || len(flights) != 0 {
			t.Errorf("the groups are %v and %d more, want %v", got, len(flights), want)
		}
	})
}

// When a group fails, the member at fault is answered, and the others are sent again in one
// transaction. Each member is answered once.
func TestFailuresInAGroupAreTheirMembersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "/x/gone")
		land := busy(t, c, flights)
		guilty, other, again, made := removal("/x/gone"), removal("/y/old"), removal("/x/gone"), creation("/z", "1")
		for _, w := range []*Write{guilty, other, again, made} {
			c.Submit(w)
		}
		land()
		for _, want := range [][]string{{"/x/gone", "/y/old", "/x/gone", "/z/1"}, {"/y/old", "/x/gone", "/z/1"}, {"/y/old", "/z/1"}} {
			f := <-flights
			if got := paths(f); !slices.Equal(got, want) {
				t.Errorf("sent %v, want %v", got, want)
			}
			f.answer <- nil
		}
		wg.Wait()
		if len(flights) != 0 {
			t.Errorf("one group too many: %v", paths(<-flights))
		}
		for w, want := range map[*Write]error{guilty: driver.ErrNoNode, other: nil, again: driver.ErrNoNode, made: nil} {
			<-w.Done
			if !errors.Is(w.Err, want) || len(w.Results) != 1 {
				t.Errorf("%s: error %v and %d results, want error %v and one result", w.Ops[0].Path, w.Err, len(w.Results), want)
			}
			if e, ok := w.Creates.(*entry); ok && *e != 1 {
				t.Errorf("%s was settled %d times", w.Ops[0].Path, *e)
			}
		}
	})
}

// If a thousand members are at fault and one is not, each member is sent a few times, and not
// once for each of the others.
func TestManyFailuresInAGroupCostAFewTransactionsEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "/x/gone")
		land := busy(t, c, flights)
		var writes []*Write
		for range many {
			writes = append(writes, removal("/x/gone"))
		}
		innocent := creation("/z", "1")
		for _, w := range append(writes, innocent) {
			c.Submit(w)
		}
		sent := 0
		var answering sync.WaitGroup
		stop := make(chan struct{})
		answering.Go(func() {
			for {
				select {
				case f := <-flights:
					sent += len(f.ops)
					f.answer <- nil
				case <-stop:
					return
				}
			}
		})
		land()
		wg.Wait()
		close(stop)
		answering.Wait()
		for _, w := range writes {
			if <-w.Done; !errors.Is(w.Err, driver.ErrNoNode) {
				t.Fatalf("a removal of a node that does not exist: error %v, want ErrNoNode", w.Err)
			}
		}
		if <-innocent.Done; innocent.Err != nil {
			t.Errorf("the member that is not at fault: %v", innocent.Err)
		}
		if sent > 30*many {
			t.Errorf("with %d members at fault, %d operations were sent, want at most %d", many, sent, 30*many)
		}
	})
}
