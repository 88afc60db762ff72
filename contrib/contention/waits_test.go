package contention_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The profile has the calls that led to each wait, the class of the lock, the contender that was
// ahead, and exactly the time that was waited.
func TestWaits(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web, ship1 := join(t, e, "web-3", contention.WithHolderLabels()), join(t, e, "shipping-7d9f8b6c4-x2k9p", contention.WithHolderLabels())
		go pay(web.Client, "orders/42", 5*time.Second, zklock.WithLabel("POST /orders/{id}/pay"))
		synctest.Wait()
		time.Sleep(time.Second)
		go ship(ship1.Client, "orders/42", 2*time.Second) // waits for 4 s
		synctest.Wait()
		time.Sleep(time.Second)
		go pay(web.Client, "orders/42", 0)   // waits for the 3 s that pay has left, and the 2 s of ship
		go pay(ship1.Client, "orders/42", 0) // waits as long, behind ship, which waits itself
		go pay(web.Client, "orders/43", time.Second)
		synctest.Wait()
		time.Sleep(time.Minute)
		want(t, parse(t, web.Handler(), ""),
			row{"held by shipping; lock orders/*; pay", [2]int64{0, int64(2 * time.Second)}},
			row{"held by web POST /orders/{id}/pay; lock orders/*; pay", [2]int64{1, int64(3 * time.Second)}})
		want(t, parse(t, ship1.Handler(), ""),
			row{"behind shipping; lock orders/*; pay", [2]int64{1, int64(5 * time.Second)}},
			row{"held by web POST /orders/{id}/pay; lock orders/*; ship", [2]int64{1, int64(4 * time.Second)}})
	})
}

// A wait that has not ended is in the profile with what it has waited so far, and a difference has
// what was waited meanwhile, without counting the wait again.
func TestWaitsThatHaveNotEnded(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web, stuck := join(t, e, "web-1"), join(t, e, "stuck-1")
		go pay(stuck.Client, "orders/42", time.Hour)
		synctest.Wait()
		go ship(web.Client, "orders/42", 0)
		synctest.Wait()
		const held = "held by stuck; lock orders/*; ship"
		time.Sleep(time.Millisecond - 1)
		want(t, parse(t, web.Handler(), ""))
		time.Sleep(time.Nanosecond)
		want(t, parse(t, web.Handler(), ""), row{held, [2]int64{1, int64(time.Millisecond)}})
		time.Sleep(10*time.Minute - time.Millisecond)
		want(t, parse(t, web.Handler(), ""), row{held, [2]int64{1, int64(10 * time.Minute)}})
		want(t, parse(t, web.Handler(), "?seconds=30"), row{held, [2]int64{0, int64(30 * time.Second)}})
		time.Sleep(time.Hour)
		want(t, parse(t, web.Handler(), ""), row{held, [2]int64{1, int64(time.Hour)}})
		want(t, parse(t, web.Handler(), "?seconds=30"))
	})
}

// Neither an acquisition that does not wait, nor a wait of less than a millisecond, is in the
// profile; a wait of a millisecond that fails is.
func TestWaitsThatCount(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web, other := join(t, e, "web-1"), join(t, e, "other-1")
		pay(web.Client, "orders/1", time.Second)
		go pay(other.Client, "orders/42", time.Hour)
		synctest.Wait()
		pay(web.Client, "orders/42", 0, zklock.WithWait(0))
		pay(web.Client, "orders/42", 0, zklock.WithWait(time.Millisecond-1))
		want(t, parse(t, web.Handler(), ""))
		pay(web.Client, "orders/42", 0, zklock.WithWait(time.Millisecond))
		pay(web.Client, "orders/42", 0, zklock.WithWait(2*time.Millisecond))
		want(t, parse(t, web.Handler(), ""), row{"held by other; lock orders/*; pay", [2]int64{2, int64(3 * time.Millisecond)}})
	})
}

// A delay is divided among the contenders that were ahead, in turn. A waiter behind a goroutine of
// its own process, and then behind another process, waits for both.
func TestWaitIsDivided(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web, office := join(t, e, "web-1", contention.WithHolderLabels()), join(t, e, "office-1")
		go pay(web.Client, "orders/42", 3*time.Second, zklock.WithLabel("POST /pay"))
		synctest.Wait()
		go pay(office.Client, "orders/42", 20*time.Second, zklock.WithLabel("export"))
		synctest.Wait()
		go ship(web.Client, "orders/42", 0)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		want(t, parse(t, web.Handler(), ""),
			row{"held by office export; lock orders/*; ship", [2]int64{0, int64(7 * time.Second)}},
			row{"held by web POST /pay; lock orders/*; ship", [2]int64{1, int64(3 * time.Second)}})
		time.Sleep(time.Hour)
		want(t, parse(t, web.Handler(), ""),
			row{"held by office export; lock orders/*; ship", [2]int64{0, int64(20 * time.Second)}},
			row{"held by web POST /pay; lock orders/*; ship", [2]int64{1, int64(3 * time.Second)}})
	})
}

// It may become known only during a wait which acquisition has the node ahead. The delay until then
// stays without its label: a difference has only what was waited meanwhile.
func TestWaitBehindAKeptNode(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := contention.New(contention.WithHolderLabels())
		h := p.Hooks()
		ahead := func(label string) zklock.WaitEvent {
			return zklock.WaitEvent{Name: "orders/42", Position: 1, Ahead: zklock.Contender{Node: "1", Host: "web", Label: label, Kept: label == ""}}
		}
		_, end := h.Wait(t.Context(), ahead(""))
		time.Sleep(time.Second)
		end(zklock.WaitResult{})
		ctx, _ := h.Wait(t.Context(), ahead(""))
		time.Sleep(time.Second)
		time.AfterFunc(10*time.Second, func() { h.Ahead(ctx, ahead("pay")) })
		want(t, parse(t, p.Handler(), "?seconds=30"),
			row{"held by web pay; lock orders/*", [2]int64{0, int64(20 * time.Second)}},
			row{"held by web; lock orders/*", [2]int64{0, int64(10 * time.Second)}})
	})
}

// Profiles of replicas merge: their samples of one call site, class and holder are one.
func TestReplicasMerge(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		holder := join(t, e, "db")
		go pay(holder.Client, "orders/42", time.Minute)
		synctest.Wait()
		var profiles []*profile.Profile
		for _, host := range []string{"web-1", "web-2", "web-3"} {
			web := join(t, e, host)
			pay(web.Client, "orders/42", 0, zklock.WithWait(time.Second))
			ship(web.Client, "users/7", 0)
			profiles = append(profiles, parse(t, web.Handler(), ""))
		}
		merged, err := profile.Merge(profiles)
		if err != nil {
			t.Fatal(err)
		}
		want(t, merged, row{"held by db; lock orders/*; pay", [2]int64{3, int64(3 * time.Second)}})
	})
}
