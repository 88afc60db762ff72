package fence_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

func seq(name string, mode zklock.Mode, zxid int64, turn uint32) fence.Sequencer {
	return fence.Sequencer{Name: name, Mode: mode, Token: zklock.Token{Zxid: zxid, Turn: turn}}
}

func one(name string, mode zklock.Mode, zxid int64) []fence.Sequencer {
	return []fence.Sequencer{seq(name, mode, zxid, 0)}
}

func TestGuardAdmitsByTheOrderOfTokens(t *testing.T) {
	const x, s = zklock.Exclusive, zklock.Shared
	var g fence.Guard
	for i, c := range []struct {
		seqs  []fence.Sequencer
		stale bool
	}{
		{one("a", x, 10), false},
		{one("a", x, 10), false}, // a second write by the same holder
		{one("a", x, 9), true},
		{[]fence.Sequencer{seq("a", x, 10, 1)}, false}, // handed over in one process
		{one("a", x, 10), true},
		{one("b", x, 1), false}, // another name
		{[]fence.Sequencer{{Name: "a", Mode: x, Token: zklock.Token{Zxid: 2}, Origin: "elsewhere"}}, false},

		{one("r", x, 10), false},
		{one("r", s, 9), true},   // a reader older than that writer
		{one("r", s, 20), false}, // two readers newer than it hold the lock together
		{one("r", s, 15), false},
		{one("r", s, 20), false},
		{one("r", x, 17), true}, // a writer has to be newer than both
		{one("r", x, 21), false},
		{one("r", s, 20), true},

		{append(one("p", x, 5), seq("q", x, 5, 0)), false}, // one lock of both names, of All
		{append(one("p", x, 6), seq("q", x, 4, 0)), true},
		{one("p", x, 5), false}, // the refused check recorded nothing
		{append(one("q", x, 7), seq("q", x, 6, 0)), false},
		{one("q", x, 6), true},
	} {
		err := g.Check(c.seqs)
		if stale := errors.Is(err, fence.ErrStale); stale != c.stale || err != nil && !stale {
			t.Errorf("%d: %v: %v", i, c.seqs, err)
		}
		var e *fence.StaleError
		if c.stale && (!errors.As(err, &e) || e.Token.Compare(e.Newest) >= 0) {
			t.Errorf("%d: %#v", i, err)
		}
	}
}

func TestGuardRefusesWhatProvesNothing(t *testing.T) {
	var g fence.Guard
	for _, seqs := range [][]fence.Sequencer{
		nil,
		{{Name: "a", Mode: zklock.Exclusive}},
		one("a", zklock.Permit, 7),
		one("a", 0, 7),
		append(one("a", zklock.Exclusive, 7), seq("s", zklock.Permit, 8, 0)),
	} {
		err := g.Do(seqs, func() error { t.Errorf("the write of %v was run", seqs); return nil })
		if !errors.Is(err, fence.ErrUnfenced) {
			t.Errorf("%v: %v", seqs, err)
		}
	}
	if err := g.Check(one("a", zklock.Exclusive, 1)); err != nil {
		t.Errorf("a refused check recorded a token: %v", err)
	}
}

func TestDoReturnsTheWritesErrorAndCallsNoneForAStaleToken(t *testing.T) {
	var g fence.Guard
	failed := errors.New("failed")
	if err := g.Do(one("a", zklock.Exclusive, 2), func() error { return failed }); err != failed {
		t.Error(err)
	}
	if err := g.Do(one("a", zklock.Exclusive, 1), func() error { t.Error("the write of a stale token was run"); return nil }); !errors.Is(err, fence.ErrStale) {
		t.Error(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(one("a", zklock.Exclusive, 2), func() error { panic("boom") })
	}()
	if err := g.Check(one("a", zklock.Exclusive, 2)); err != nil { // the panic has not left the guard locked
		t.Error(err)
	}
}

// TestWritesOfOneNameAreInTheOrderOfTheirTokens lets holders write concurrently, some
// of them to two names in either order. No write may follow a write with a newer
// token.
func TestWritesOfOneNameAreInTheOrderOfTheirTokens(t *testing.T) {
	var g fence.Guard
	written := map[string]*int64{"a": new(int64), "b": new(int64)}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 0))
			for i := int64(1); i <= 500; i++ {
				zxid := i + rng.Int64N(20)
				names := [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}}[rng.IntN(4)]
				var seqs []fence.Sequencer
				for _, n := range names {
					seqs = append(seqs, seq(n, zklock.Exclusive, zxid, 0))
				}
				err := g.Do(seqs, func() error {
					for _, n := range names {
						last := *written[n] // a data race that the race detector reports if two writes run at once
						runtime.Gosched()
						if last > zxid || *written[n] != last {
							t.Errorf("name %s: the write of token %d ran after or during that of %d", n, zxid, last)
						}
						*written[n] = zxid
					}
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNamesDoNotWaitForEachOther(t *testing.T) {
	var g fence.Guard
	err := g.Do(one("a", zklock.Exclusive, 1), func() error { return g.Check(one("b", zklock.Exclusive, 1)) })
	if err != nil {
		t.Error(err)
	}
}

func TestBoundedGuardIsTooStrictAndNeverTooLenient(t *testing.T) {
	g := fence.Guard{MaxNames: 3}
	for i, name := range []string{"a", "b", "c", "d", "e"} { // a and b are forgotten
		if err := g.Check(one(name, zklock.Exclusive, int64(10+i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		mode  zklock.Mode
		zxid  int64
		stale bool
	}{
		{"a", zklock.Exclusive, 9, true},  // correctly: it is stale
		{"b", zklock.Exclusive, 10, true}, // correctly: it is stale
		{"b", zklock.Exclusive, 11, false},
		{"f", zklock.Exclusive, 10, true}, // too strict: the guard cannot know that f is new
		{"f", zklock.Shared, 10, true},
		{"c", zklock.Exclusive, 12, false}, // remembered
		{"c", zklock.Exclusive, 11, true},
		{"f", zklock.Exclusive, 20, false},
	} {
		err := g.Check(one(c.name, c.mode, c.zxid))
		if errors.Is(err, fence.ErrStale) != c.stale {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestBoundedGuardAdmitsNothingThatAnUnboundedOneRefuses compares the two with random
// sequencers.
func TestBoundedGuardAdmitsNothingThatAnUnboundedOneRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bounded, all := fence.Guard{MaxNames: 5}, fence.Guard{}
	refused, admitted := 0, 0
	for i := range 20000 {
		s := one(string(rune('a'+rng.IntN(12))), zklock.Mode(1+rng.IntN(2)), 1+int64(i/10)+rng.Int64N(30))
		if bounded.Check(s) != nil {
			refused++
			continue
		}
		admitted++
		if err := all.Check(s); err != nil {
			t.Fatalf("the bounded guard admitted %v, which the unbounded one refuses: %v", s, err)
		}
	}
	if refused < 100 || admitted < 100 {
		t.Errorf("%d refused, %d admitted: the test shows nothing", refused, admitted)
	}
}

// The bound also holds while names are in use: a long write with an old token keeps
// its own name, and no others.
func TestBoundHoldsWhileTheOldestNameIsInUse(t *testing.T) {
	g := fence.Guard{MaxNames: 2}
	err := g.Do(one("old", zklock.Exclusive, 1), func() error {
		for i := range int64(100) {
			if err := g.Check(one("name"+strconv.FormatInt(i, 10), zklock.Exclusive, 10+i)); err != nil {
				return err
			}
		}
		if err := g.Check(one("unknown", zklock.Exclusive, 50)); !errors.Is(err, fence.ErrStale) {
			t.Errorf("unknown name with a token older than the forgotten ones: got error %v, want ErrStale", err)
		}
		return g.Check(one("name99", zklock.Exclusive, 109))
	})
	if err != nil {
		t.Error(err)
	}
	// The name that was in use is now the first to be forgotten.
	if err := g.Check(one("new", zklock.Exclusive, 200)); err != nil {
		t.Error(err)
	}
	if err := g.Check(one("old", zklock.Exclusive, 1)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the old name was not forgotten: got error %v, want ErrStale", err)
	}
}

// TestNameInUseIsNotForgotten lets another name push the bounded guard over its limit
// while the first name is in use. If the guard forgot the name in use, its next user
// would not wait for the present one.
func TestNameInUseIsNotForgotten(t *testing.T) {
	g := fence.Guard{MaxNames: 1}
	const workers, rounds = 4, 200
	count := 0
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				err := g.Do(one("a", zklock.Exclusive, 5), func() error {
					n := count
					if err := g.Check(one("b", zklock.Exclusive, 10)); err != nil {
						return err
					}
					runtime.Gosched()
					count = n + 1
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if count != workers*rounds {
		t.Errorf("counted to %d, want %d", count, workers*rounds)
	}
}
