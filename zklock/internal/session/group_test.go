package session

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Contenders that one transaction creates below one znode would have one
// token. And a create counts what is there after the transaction's deletes.
func TestGroupHasOneCreateOfANameAndDeletesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights, _ := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		for _, w := range []*Write{creation("/x", "1"), creation("/x", "2"), creation("/y", "1"), removal("/x/old")} {
			c.Submit(w)
		}
		synctest.Wait()
		if len(flights) != 0 {
			t.Fatal("more flights than there are")
		}
		land()
		for _, want := range [][]string{{"/x/old", "/x/1", "/y/1"}, {"/x/2"}} {
			select {
			case f := <-flights:
				if got := paths(f); !slices.Equal(got, want) {
					t.Errorf("group %v, want %v", got, want)
				}
				f.answer <- nil
				synctest.Wait()
			default:
				t.Fatalf("no group, want %v", want)
			}
		}
		wg.Wait()
		if len(flights) != 0 {
			t.Errorf("one more group: %v", paths(<-flights))
		}
	})
}

// Nobody waits for a timer: who is alone is sent at once. Who comes while all
// flights are under way goes with the next.
func TestLoneWriteGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights, _ := groups(t.Context(), &wg, "")
		for i := range maxFlights + 2 {
			c.Submit(removal("/x/old"))
			synctest.Wait() // on no clock: a timer would not have fired
			if want := min(i+1, maxFlights); len(flights) != want {
				t.Fatalf("%d flights after %d writes, want %d", len(flights), i+1, want)
			}
		}
		for range maxFlights {
			(<-flights).answer <- nil
			synctest.Wait()
		}
		f := <-flights
		if got := paths(f); len(got) != 2 {
			t.Errorf("the next group has %v, want both that waited", got)
		}
		f.answer <- nil
		wg.Wait()
		if len(flights) != 0 {
			t.Errorf("one more group: %v", paths(<-flights))
		}
	})
}

// A group is no larger than a server takes with ease, and nobody is left out for
// being too large.
func TestGroupHasASize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights, _ := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		for i, bytes := range []int{100 << 10, 100 << 10, 100 << 10, 2 * maxGroupBytes, 1} {
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
			synctest.Wait() // or two groups that leave at once come in any order
		}
		wg.Wait()
		if want := [][]string{{"/0/n", "/1/n"}, {"/2/n"}, {"/3/n"}, {"/4/n"}}; !slices.EqualFunc(got, want, slices.Equal) || len(flights) != 0 {
			t.Errorf("groups %v and %d more, want %v", got, len(flights), want)
		}
	})
}

// When a group fails, each member at fault is answered, and costs the others one more
// transaction, which they share. Each is settled once.
func TestFailuresInAGroupAreTheirMembersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights, settled := groups(t.Context(), &wg, "/x/gone")
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
			t.Errorf("one more group: %v", paths(<-flights))
		}
		for w, want := range map[*Write]error{guilty: driver.ErrNoNode, other: nil, again: driver.ErrNoNode, made: nil} {
			<-w.Done
			if !errors.Is(w.Err, want) || len(w.Results) != 1 {
				t.Errorf("%s: %v, %d results, want %v and one", w.Ops[0].Path, w.Err, len(w.Results), want)
			}
			if n := len(slices.DeleteFunc(slices.Clone(*settled), func(s *Write) bool { return s != w })); n != 1 {
				t.Errorf("%s was settled %d times", w.Ops[0].Path, n)
			}
		}
	})
}

// A thousand members at fault, and one that is not, cost each a few transactions, and
// not one for each of the others.
func TestManyFailuresInAGroupCostAFewTransactionsEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		var wg sync.WaitGroup
		c, flights, _ := groups(t.Context(), &wg, "/x/gone")
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
				t.Fatalf("a removal of nothing: %v", w.Err)
			}
		}
		if <-innocent.Done; innocent.Err != nil {
			t.Errorf("the innocent member: %v", innocent.Err)
		}
		if sent > 30*many {
			t.Errorf("%d members at fault: %d operations were sent", many, sent)
		}
	})
}
