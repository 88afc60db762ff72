package backlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
)

// The queue calls functions in order, and drops those that do not fit. In their place it reports their number.
func TestQueueKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q backlog.Queue
		var got, want []string
		stuck := make(chan struct{})
		add := func(what string) bool {
			return q.Add(func() { got = append(got, what) }, func(n uint64) { got = append(got, fmt.Sprint(n, " from ", what)) })
		}
		q.Add(func() { <-stuck }, nil)
		synctest.Wait()
		for i := range backlog.Size {
			if want = append(want, fmt.Sprint(i)); !add(fmt.Sprint(i)) {
				t.Errorf("line %d was dropped", i)
			}
		}
		for i := range 3 {
			if add(fmt.Sprint("more ", i)) {
				t.Errorf("line %d of those that do not fit was not dropped", i)
			}
		}
		close(stuck)
		synctest.Wait()
		add("last")
		synctest.Wait()
		if want = append(want, "3 from more 0", "last"); !slices.Equal(got, want) {
			t.Errorf("called for %q, want %q", got, want)
		}
		if n := q.Dropped(); n != 3 {
			t.Errorf("%d dropped, want 3", n)
		}
	})
}

// Flush waits for what was added, and gives up in time. It does not wait for a line that was stuck for that long
// before.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(q *backlog.Queue) time.Duration {
			began := time.Now()
			q.Flush(backlog.Patience)
			return time.Since(began)
		}
		var q backlog.Queue
		if d := took(&q); d != 0 {
			t.Errorf("an empty queue took %v", d)
		}
		for range 2 { // the second goroutine has a second of its own
			written := false
			q.Add(func() { <-time.After(backlog.Patience / 2); written = true }, nil)
			if d := took(&q); d != backlog.Patience/2 || !written {
				t.Errorf("a slow line took %v, and was written: %v", d, written)
			}
			<-time.After(time.Hour)
		}
		stuck := make(chan struct{})
		q.Add(func() { <-stuck }, nil)
		for _, want := range []time.Duration{backlog.Patience, 0} {
			if d := took(&q); d != want {
				t.Errorf("a stuck line took %v, want %v", d, want)
			}
		}
		close(stuck)
	})
}

// A line has the attributes and the groups of its logger, the time and the level of its call, and goes to the logger that is slog's
// default at that moment if there is no other.
func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := slog.Default()
		defer slog.SetDefault(before)
		var q backlog.Queue
		l := q.Logger(nil).With("a", 1).WithGroup("g").With("b", 2)
		stuck := make(chan struct{})
		q.Add(func() { <-stuck }, nil)
		var first, second strings.Builder
		slog.SetDefault(slog.New(slog.NewTextHandler(&first, nil)))
		l.WarnContext(context.Background(), "one", "c", 3)
		l.Debug("below the level")
		at := time.Now()
		<-time.After(time.Minute)
		slog.SetDefault(slog.New(slog.NewTextHandler(&second, nil)))
		l.Error("two")
		close(stuck)
		synctest.Wait()
		want := "time=" + at.Format("2006-01-02T15:04:05.000Z07:00") + " level=WARN msg=one a=1 g.b=2 g.c=3\n"
		if first.String() != want || !strings.Contains(second.String(), "level=ERROR msg=two a=1 g.b=2") || strings.Count(second.String(), "\n") != 1 {
			t.Errorf("the first logger has %q, want %q; the second has %q", first.String(), want, second.String())
		}
	})
}

// Without a queue the caller writes its line itself.
func TestLoggerWithoutAQueue(t *testing.T) {
	var log strings.Builder
	(*backlog.Queue)(nil).Logger(slog.New(slog.NewTextHandler(&log, nil))).Warn("now")
	if !strings.Contains(log.String(), "msg=now") {
		t.Errorf("logged %q", log.String())
	}
}
