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

func (slow) Leave(int) {}

func (slow) Close() {}

// TestUseRepeatsAName: the command use reports the times of the last of its uses, and refuses
// what is not a number of times.
func TestUseRepeatsAName(t *testing.T) {
	var out bytes.Buffer
	l := &counting{}
	if err := Serve(l, "v", strings.NewReader("use mutex n 3\nuse mutex n 0\nuse mutex n x\nuse mutex\n"), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "done acquire=") || l.acquired != 3 || l.released != 3 {
		t.Errorf("%d acquired, %d released, want 3 and 3: %q", l.acquired, l.released, lines)
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "error use: ") {
			t.Errorf("%q, want an error", line)
		}
	}
}

// counting is a Locker that counts.
type counting struct{ acquired, released int }

func (*counting) Prepare(int, bool) error { return nil }

func (c *counting) Acquire(context.Context, string, string, int) (func() error, error) {
	c.acquired++
	return func() error { c.released++; return nil }, nil
}

func (*counting) Try(context.Context, string) error { return nil }

func (*counting) Leave(int) {}

func (*counting) Close() {}

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
