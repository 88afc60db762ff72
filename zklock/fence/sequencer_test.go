package fence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func open(t testing.TB) *zklock.Client {
	t.Helper()
	c, err := zklock.Open("mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSequencerAsText(t *testing.T) {
	for _, c := range []struct {
		s    fence.Sequencer
		text string
	}{
		{seq("orders/42", zklock.Exclusive, 0xa1, 3), "00000000000000a1.00000003 exclusive orders%2F42"},
		{seq("a, b%", zklock.Shared, 1, 0), "0000000000000001.00000000 shared a%2C%20b%25"},
		{seq("größe", zklock.Exclusive, 1, 0), "0000000000000001.00000000 exclusive gr%C3%B6%C3%9Fe"},
	} {
		if got := c.s.String(); got != c.text {
			t.Errorf("%#v is %q, want %q", c.s, got, c.text)
		}
		back, err := fence.Parse(c.text)
		if err != nil || back != c.s {
			t.Errorf("Parse(%q) = %#v, %v", c.text, back, err)
		}
	}
}

func TestTextThatIsNotASequencer(t *testing.T) {
	const token = "00000000000000a1.00000003"
	for _, text := range []string{
		"", "nonsense", token, token + " exclusive", token + " exclusive ", token + "  exclusive a",
		token + " exclusive a b", token + " permit a", token + " Exclusive a", token + " exclusive %zz",
		token + " exclusive %00", token + " exclusive %ff", token + " exclusive " + strings.Repeat("x", 513),
		"00000000000000A1.00000003 exclusive a", "a1.3 exclusive a", "0000000000000000.00000000 exclusive a",
		token + " exclusive a\n",
		token + " exclusive %2Fa", token + " exclusive a%2F", token + " exclusive a%2F%2Fb", token + " exclusive .", token + " exclusive a%2F..", token + " exclusive %C2%85",
	} {
		if s, err := fence.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %#v", text, s)
		} else if len(err.Error()) > 500 {
			t.Errorf("the error has %d bytes, want 500 at most", len(err.Error()))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("00000000000000a1.00000003 exclusive orders%2F42")
	f.Add("00000000000000a1.00000003 shared a%")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fence.Parse(text)
		if err != nil {
			return
		}
		back, err := fence.Parse(s.String())
		if err != nil || back != s {
			t.Errorf("%q became %#v, then %#v, %v", text, s, back, err)
		}
	})
}

func TestValuesOfWhatIsHeld(t *testing.T) {
	c := open(t)
	ctx := t.Context()
	if got := fence.Values(ctx); got != nil {
		t.Errorf("values %q for a context without a lock", got)
	}
	err := zklock.Do(ctx, c.Mutex("outer"), func(ctx context.Context, _ *zklock.Lock) error {
		return zklock.Do(ctx, c.Mutex("inner"), func(ctx context.Context, _ *zklock.Lock) error {
			// A lock that was joined by re-entry is still one lock.
			return zklock.Do(ctx, c.Mutex("outer"), func(ctx context.Context, _ *zklock.Lock) error {
				values := fence.Values(ctx)
				seqs, err := fence.ParseValues(values, "here")
				if err != nil {
					return err
				}
				if len(seqs) != 2 || seqs[0].Name != "outer" || seqs[1].Name != "inner" {
					t.Errorf("%q", values)
				}
				for _, l := range zklock.HeldIn(ctx) {
					want := fence.Of(l)[0]
					want.Origin = "here"
					if seqs[0] != want && seqs[1] != want {
						t.Errorf("%v is missing in %q", want, values)
					}
				}
				if got := fence.Values(zklock.Detach(ctx)); got != nil {
					t.Errorf("values %q for a detached context", got)
				}
				return nil
			}, zklock.Reenter())
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoLockHasNoSequencer(t *testing.T) {
	if got := fence.Of(nil); got != nil {
		t.Errorf("%v", got)
	}
}

func TestSequencersOfEachKindOfLock(t *testing.T) {
	c := open(t)
	for _, k := range []struct {
		a     zklock.Acquirer
		modes []zklock.Mode
		names []string
	}{
		{c.Mutex("a"), []zklock.Mode{zklock.Exclusive}, []string{"a"}},
		{c.RWMutex("a").Reader(), []zklock.Mode{zklock.Shared}, []string{"a"}},
		{c.RWMutex("a").Writer(), []zklock.Mode{zklock.Exclusive}, []string{"a"}},
		{c.Semaphore("s", 2), nil, nil},
		{zklock.All(c.Mutex("b"), c.Mutex("a"), c.Mutex("b")), []zklock.Mode{zklock.Exclusive, zklock.Exclusive}, []string{"a", "b"}},
		{zklock.All(c.Mutex("b"), c.RWMutex("a").Reader()), []zklock.Mode{zklock.Shared, zklock.Exclusive}, []string{"a", "b"}},
	} {
		err := zklock.Do(t.Context(), k.a, func(ctx context.Context, _ *zklock.Lock) error {
			held := fence.Held(ctx)
			var names []string
			for i, s := range held {
				names = append(names, s.Name)
				if i < len(k.modes) && s.Mode != k.modes[i] || s.Token.IsZero() {
					t.Errorf("%s: %#v", k.a.Name(), s)
				}
			}
			if !slices.Equal(names, k.names) {
				t.Errorf("%s has sequencers of %q, want %q", k.a.Name(), names, k.names)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReleasedLockStillHasItsSequencer(t *testing.T) {
	l, err := open(t).Mutex("a").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fence.Of(l); len(got) != 1 || got[0].Token != l.Token() {
		t.Errorf("%v", got)
	}
}

func TestValuesThatWereJoinedOnTheWay(t *testing.T) {
	a, b, c := seq("a", zklock.Exclusive, 1, 0), seq("b", zklock.Shared, 2, 0), seq("c", zklock.Exclusive, 3, 0)
	got, err := fence.ParseValues([]string{a.String() + "," + b.String(), "\t" + c.String() + " "}, "")
	if err != nil || len(got) != 3 || got[0] != a || got[1] != b || got[2] != c {
		t.Errorf("%v, %v", got, err)
	}
	for _, values := range [][]string{{""}, {a.String() + ","}, {a.String(), "nonsense"}, {strings.Repeat(a.String()+",", 128) + a.String()}} {
		if got, err := fence.ParseValues(values, ""); err == nil {
			t.Errorf("%.100q gave %d sequencers", values, len(got))
		}
	}
	if got, err := fence.ParseValues(nil, ""); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestValuesAreAddedToThoseThatArePassedOn(t *testing.T) {
	c := open(t)
	other := seq("a", zklock.Exclusive, 1, 0).String()   // for instance of a lock below another root
	shared := seq("b", zklock.Shared, 1<<40, 0).String() // of a lock of another ensemble
	err := zklock.Do(t.Context(), zklock.All(c.Mutex("a"), c.Mutex("b")), func(ctx context.Context, _ *zklock.Lock) error {
		own := fence.Values(ctx)
		for _, x := range []struct{ passedOn, want []string }{
			{nil, own},
			{[]string{"x"}, []string{"x", own[0], own[1]}},
			{[]string{own[1], "x"}, []string{"x", own[0], own[1]}},
			{[]string{"x," + own[1], own[0] + ", y"}, []string{"x", "y", own[0], own[1]}},
			{[]string{other}, own},
			{[]string{"x, " + other, shared, "y"}, []string{"x", "y", own[0], own[1]}},
		} {
			spare := append(make([]string, 0, 10), x.passedOn...)
			if got := fence.AddValues(ctx, spare); !slices.Equal(got, x.want) {
				t.Errorf("%q: %q, want %q", x.passedOn, got, x.want)
			}
			if !slices.Equal(spare, x.passedOn) {
				t.Errorf("%q: the caller's values have become %q", x.passedOn, spare)
			}
			if rest := spare[:cap(spare)]; slices.ContainsFunc(rest[len(spare):], func(s string) bool { return s != "" }) {
				t.Errorf("%q: the memory behind the caller's values was written: %q", x.passedOn, rest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fence.AddValues(t.Context(), []string{"x", other}); !slices.Equal(got, []string{"x", other}) {
		t.Errorf("without a lock: %q", got)
	}
}

// TestOneValueForEachName: a receiver takes all values of one name for those of one
// lock. So if locks of two roots or ensembles have the same name, only one of them
// may be sent.
func TestOneValueForEachName(t *testing.T) {
	outer, inner := open(t), open(t)
	// Both ensembles count transactions from the same number. This lock makes their
	// tokens differ.
	err := zklock.Do(t.Context(), inner.Mutex("b"), func(context.Context, *zklock.Lock) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	err = zklock.Do(t.Context(), outer.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
		return zklock.Do(ctx, inner.Mutex("a"), func(ctx context.Context, nearest *zklock.Lock) error {
			if got, want := fence.Values(ctx), fence.Of(nearest)[0].String(); len(got) != 1 || got[0] != want {
				t.Errorf("%q, want %q", got, want)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMoreValuesThanAReceiverAccepts: none is left out, or a call under a lock that was
// lost would be served. The receiver refuses the call.
func TestMoreValuesThanAReceiverAccepts(t *testing.T) {
	var many []string
	for i := range 128 {
		many = append(many, seq(fmt.Sprintf("far/%d", i), zklock.Exclusive, 1, 0).String())
	}
	if _, err := fence.ParseValues(fence.AddValues(t.Context(), many), ""); err != nil {
		t.Errorf("128 values: %v", err)
	}
	c := open(t)
	var mutexes []zklock.Acquirer
	for i := range 128 {
		mutexes = append(mutexes, c.Mutex(fmt.Sprintf("near/%d", i)))
	}
	err := zklock.Do(t.Context(), c.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
		got := fence.AddValues(ctx, many)
		if want := append(slices.Clone(many), fence.Values(ctx)...); !slices.Equal(got, want) || len(got) != 129 {
			t.Errorf("%d values, the first %q and the last %q", len(got), got[0], got[len(got)-1])
		}
		if seqs, err := fence.ParseValues(got, ""); err == nil {
			t.Errorf("a receiver accepts %d values", len(seqs))
		}
		return zklock.Do(ctx, zklock.All(mutexes...), func(ctx context.Context, _ *zklock.Lock) error {
			if got := fence.Values(ctx); len(got) != 129 || !strings.Contains(got[128], " exclusive a") {
				t.Errorf("%d values for 129 locks, the last %q", len(got), got[len(got)-1])
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
