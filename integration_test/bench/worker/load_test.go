package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// limited is a Locker with permits, whose callers wait until their context ends at most.
type limited struct {
	permits chan struct{}
	kinds   map[string]*atomic.Int64 // the acquisitions of each kind; nil: not counted
	left    *atomic.Int64            // the callers that left; nil: not counted
}

func (limited) Prepare(int, bool) error { return nil }

func (l limited) Acquire(ctx context.Context, kind, _ string, _ int) (func() error, error) {
	if n := l.kinds[kind]; n != nil {
		n.Add(1)
	}
	select {
	case l.permits <- struct{}{}:
		return func() error { <-l.permits; return nil }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (limited) Try(context.Context, string) error { return nil }

func (l limited) Leave(int) {
	if l.left != nil {
		l.left.Add(1)
	}
}

func (limited) Close() {}

// answer has a Locker do a load, and returns the second line that it answers.
func answer(t *testing.T, l Locker, command string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(l, "v", strings.NewReader(command+"\ngo\n"), &out); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if first != "ready" {
		t.Fatalf("%q, want ready first", out.String())
	}
	return second
}

// TestLoadCountsTheGrantsOfEachStep: a lock that is held for 20 ms is granted 50 times in a second,
// if a caller always waits. Callers that were refused come again, and do not count as failures.
func TestLoadCountsTheGrantsOfEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited{permits: make(chan struct{}, 1), left: new(atomic.Int64)}
		got := answer(t, l, "load mutex n 30 20 1000 1x1000 9x2000 1x1000")
		if want := "done failed=0 grants000=50 grants001=50 grants002=50 grants003="; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if n := l.left.Load(); n != 11 {
			t.Errorf("%d callers left, want 11", n)
		}
	})
}

// TestLoadOfALockThatIsNeverGranted: no phase waits for the callers of another one.
func TestLoadOfALockThatIsNeverGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := answer(t, &once{}, "load mutex n 20000 20 1000 2x1000 2x1000")
		if want := "done failed=0 grants000=0 grants001=0"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if took := time.Since(start); took != 21*time.Second {
			t.Errorf("it took %v, want 21s: callers that begin after 1 s wait for 20 s", took)
		}
	})
}

// once is a Locker that grants the first acquisition only.
type once struct {
	limited
	granted bool
}

func (o *once) Acquire(ctx context.Context, _, _ string, _ int) (func() error, error) {
	if !o.granted {
		o.granted = true
		return func() error { return nil }, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestLoadCountsCallsThatFailEarly: an error before the end of the wait is none of the overload.
func TestLoadCountsCallsThatFailEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, want := answer(t, &broken{}, "load mutex n 30 20 1000 2x1000"), "done failed=200 grants000=0"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// broken is a Locker that fails after 10 ms, apart from its first acquisition.
type broken struct{ once }

func (b *broken) Acquire(ctx context.Context, kind, name string, g int) (func() error, error) {
	if !b.granted {
		return b.once.Acquire(ctx, kind, name, g)
	}
	time.Sleep(10 * time.Millisecond)
	return nil, errors.New("broken")
}

// TestArrivalsDoNotWaitForEachOther: they come at their rate, also if each of them is refused, and
// one in ten of a mixed load wants a writer.
func TestArrivalsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited{permits: make(chan struct{}, 1), kinds: map[string]*atomic.Int64{Reader: {}, Writer: {}}}
		answer(t, l, "load mixed n 5000 60000 1000 @1000x10000")
		readers, writers := l.kinds[Reader].Load(), l.kinds[Writer].Load()
		if n := readers + writers; n < 9000 || n > 11000 { // ten standard deviations
			t.Errorf("%d arrivals in 10 s at 1000 a second", n)
		}
		if writers < readers/10 || writers > readers/8 {
			t.Errorf("%d writers and %d readers, want one writer in ten", writers, readers)
		}
	})
}

func TestLoadsThatAreWrong(t *testing.T) {
	for _, words := range []string{
		"", "n 30 20 1000", "n x 20 1000 1x1000", "n 30 0 1000 1x1000", "n 30 20 1000 1", "n 30 20 1000 0x1000",
		"n 30 20 1000 @0x1000", "n 30 20 1000 @ax1000", "n 30 20 1000 1x1000 ax1000",
	} {
		var out bytes.Buffer
		if err := Serve(limited{}, "v", strings.NewReader("load mutex "+words+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), "error load: ") {
			t.Errorf("%q: %q, want an error", words, out.String())
		}
	}
	if got := fmt.Sprint(GrantsKey(7)); got != "grants007" {
		t.Errorf("the key of a step is %q; programs in other languages write grants007", got)
	}
}
