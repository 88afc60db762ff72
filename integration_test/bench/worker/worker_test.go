package worker

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a Locker whose Acquire takes that long.
type slow time.Duration

func (slow) Prepare(int, bool) error { return nil }

func (s slow) Acquire(context.Context, string, string, int) (func() error, error) {
	time.Sleep(time.Duration(s))
	return func() error { return nil }, nil
}

func (s slow) Try(context.Context, string) error { return nil }

func (slow) Close() {}

// TestATurnCountsACycleAtLeast: if no cycle ends within a turn's time, the turn is extended
// until the first one ends.
func TestATurnCountsACycleAtLeast(t *testing.T) {
	synctest.Test(t, turnsCountACycleAtLeast)
}

func turnsCountACycleAtLeast(t *testing.T) {
	const takes = 30 * time.Millisecond
	for _, c := range []struct {
		milliseconds int
		longer       bool // the turn takes longer than these milliseconds
	}{{1, true}, {300, false}} {
		var out bytes.Buffer
		in := strings.NewReader(fmt.Sprintf("cycles mutex 3 own p %d\ngo\n", c.milliseconds))
		if err := Serve(slow(takes), "v", in, &out); err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(out.String(), "done ")
		got := map[string]float64{}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			var v float64
			if _, err := fmt.Sscan(value, &v); err != nil {
				t.Fatalf("%q: %v", out.String(), err)
			}
			got[key] = v
		}
		if got["cycles"] < 1 || got["acquire50"] < float64(takes.Microseconds()) {
			t.Errorf("%d ms: %v", c.milliseconds, got)
		}
		if longer := got["seconds"] > float64(c.milliseconds)/1000; longer != c.longer {
			t.Errorf("%d ms: the counted time is %v s; longer than asked for: %v", c.milliseconds, got["seconds"], longer)
		}
	}
}
