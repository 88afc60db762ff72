package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// limited is a connection to servers that cut it under a request that is larger than a limit.
type limited struct {
	onConn
	limit   int
	cuts    int
	broken  bool // the network cuts it, whatever the size
	silent  bool // nothing is answered, so the driver gives it up
	largest int  // of the requests that were answered
}

func (l *limited) Multi(_ context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	size := sizeOf(ops)
	if l.silent {
		l.generation++
		return nil, fmt.Errorf("%w: %w", driver.ErrConnLoss, os.ErrDeadlineExceeded)
	}
	if size > l.limit || l.broken {
		l.cuts++
		l.generation++
		return nil, driver.ErrConnLoss
	}
	l.largest = max(l.largest, size)
	return make([]driver.OpResult, len(ops)), nil
}

// request returns operations whose request has that size.
func request(size int) []driver.Op {
	op := driver.CheckOp("/", driver.AnyVersion)
	rest := size - sizeOf([]driver.Op{op})
	return []driver.Op{driver.SetOp("/", make([]byte, rest-4), driver.AnyVersion)}
}

// A client that does not know its servers' limit learns it from few lost connections, for good.
func TestGroupsLearnTheServersLimit(t *testing.T) {
	for _, limit := range []int{maxGroupBytes + 8, 40_000, 20_000, 5_000, leastGroup + 8, 1_000, 500} {
		synctest.Test(t, func(t *testing.T) {
			ds := &limited{limit: limit}
			ds.generation = 1
			s := busySession(ds, time.Hour)
			for end := time.Now().Add(20 * time.Hour); time.Now().Before(end); time.Sleep(10 * time.Second) {
				_, _ = s.multi(t.Context(), "test", 2, request(s.commits.most()))
			}
			t.Logf("limit %d: %d lost connections, groups of %d bytes", limit, ds.cuts, s.commits.most())
			if ds.largest < min(limit, maxGroupBytes)/4 {
				t.Errorf("limit %d: the largest group has %d bytes", limit, ds.largest)
			}
			if limit > maxGroupBytes != (ds.cuts == 0) || ds.cuts > 12+7+20 {
				t.Errorf("limit %d: %d connections were lost", limit, ds.cuts)
			}
		})
	}
}

// A connection that is lost under a group no larger than those that it has answered shows nothing. One that is lost
// under a larger one is forgotten.
func TestLostConnectionsThatShowNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := &limited{limit: 1 << 20}
		ds.generation = 1
		s := busySession(ds, time.Hour)
		whole := s.commits.most()
		send := func(size int) { _, _ = s.multi(t.Context(), "test", 2, request(size)) }
		for range 10 {
			send(1000)
			ds.broken = true
			send(900)
			ds.broken = false
		}
		if got := s.commits.most(); got != whole {
			t.Errorf("groups have %d bytes after connections were lost under small ones, want %d", got, whole)
		}
		ds.broken = true
		send(6000)
		ds.broken = false
		if got := s.commits.most(); got != 3000 {
			t.Errorf("groups have %d bytes after a connection was lost under one of 6000, want 3000", got)
		}
		for range 20 {
			time.Sleep(firstForget)
			send(100)
		}
		if got := s.commits.most(); got != whole {
			t.Errorf("groups have %d bytes 20 minutes later, want %d", got, whole)
		}
	})
}

// Of the requests that are lost with a connection, the largest may be at fault, whichever is noticed first: a small group
// that was under way with a large request makes no groups small. None makes them smaller than leastGroup.
func TestLargestOfTheLostRequestsIsToBlame(t *testing.T) {
	const before = 20_000
	for _, c := range []struct {
		sizes [2]int // of two requests
		group [2]int // how many members they have
		want  int64
	}{
		{[2]int{300, 9000}, [2]int{2, 2}, 4500},
		{[2]int{9000, 300}, [2]int{2, 2}, 4500},
		{[2]int{300, 9000}, [2]int{2, 1}, 4500},
		{[2]int{9000, 300}, [2]int{1, 2}, 4500},
		{[2]int{300, 90_000}, [2]int{2, 1}, before},
		{[2]int{90_000, 300}, [2]int{1, 2}, before},
		{[2]int{90_000, 300}, [2]int{1, 1}, before},
		{[2]int{300, 400}, [2]int{2, 2}, leastGroup},
	} {
		var b bounds
		var p proof
		b.group.Store(before)
		for i, size := range c.sizes {
			b.note(&p, 1, c.group[i], size, driver.ErrConnLoss)
		}
		if got := b.group.Load(); got != c.want {
			t.Errorf("requests of %v bytes, with %v members, were lost: groups have %d bytes, want %d", c.sizes, c.group, got, c.want)
		}
	}
}

// One lost connection makes no groups smaller than leastGroup, nor do several if the servers read as large a request in
// between. So a network that cuts connections leaves groups as they are.
func TestSmallGroupsNeedSeveralLostConnections(t *testing.T) {
	for between, want := range map[int]int64{0: 600, 1199: 1199, 1200: leastGroup} {
		var b bounds
		var p proof
		for gen := range uint64(tooOften) {
			b.note(&p, gen+1, 2, 1200, driver.ErrConnLoss)
			if got := b.group.Load(); gen+1 < tooOften && got != leastGroup {
				t.Errorf("after %d lost connections: groups have %d bytes, want %d", gen+1, got, leastGroup)
			}
			if between > 0 && gen+1 < tooOften {
				b.note(&p, gen+2, 1, between, nil)
			}
		}
		if got := b.group.Load(); got != want {
			t.Errorf("with answers to requests of %d bytes: groups have %d bytes, want %d", between, got, want)
		}
	}
}

// After a connection was lost under a large request of one caller, groups have no more than servers are known to read.
func TestGroupsAfterALargeRequestWasCut(t *testing.T) {
	for proven, want := range map[int64]int64{0: trusted, 2 * trusted: 2 * trusted} {
		var b bounds
		var p proof
		b.proven.Store(proven)
		b.note(&p, 1, 1, 120_000, driver.ErrConnLoss)
		if got := b.group.Load(); got != want {
			t.Errorf("servers are known to read %d bytes: groups have %d bytes, want %d", proven, got, want)
		}
	}
}

// What the servers read shows nothing of those that a session is connected to later, nor of the same ones after they have refused
// less: an operator has lowered the limit, and may have lowered it further.
func TestAnswersShowNothingOfTheNextConnection(t *testing.T) {
	set := &Settings{}
	for what, lower := range map[string]func(b *bounds, p *proof){
		"a new connection":                     func(b *bounds, _ *proof) { b.renew() },
		"an answer from the connection before": func(b *bounds, _ *proof) { b.renew(); b.prove(1<<20, 0) },
		"a request was refused": func(b *bounds, p *proof) {
			for gen := range uint64(tooOften) {
				b.note(p, gen+1, 1, 500_000, driver.ErrConnLoss)
			}
		},
	} {
		var b bounds
		var p proof
		b.prove(1<<20, 0)
		if got := b.limit(set); got != defaultMaxBuffer {
			t.Fatalf("the limit is %d, want %d", got, defaultMaxBuffer)
		}
		if lower(&b, &p); b.limit(set) != trusted {
			t.Errorf("%s: the limit is %d, want %d until the servers are asked", what, b.limit(set), trusted)
		}
	}
}

// A server that answers nothing, however long, has not refused a size.
func TestSilenceShowsNothingOfSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := &limited{limit: 1 << 20, silent: true}
		ds.generation = 1
		s := busySession(ds, time.Hour)
		whole := s.commits.most()
		for range 2 * tooOften {
			_, _ = s.multi(t.Context(), "test", 2, request(30_000))
			_, _ = s.Transact(t.Context(), request(30_000))
		}
		ds.silent = false
		if _, err := s.Transact(t.Context(), request(30_000)); err != nil || s.commits.most() != whole {
			t.Errorf("%v, and groups of %d bytes, want %d", err, s.commits.most(), whole)
		}
	})
}

// A request of one caller that the servers do not read is refused after a few tries: each costs all callers of the
// session their connection. Smaller requests are sent as before.
func TestRequestThatIsTooLargeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := &limited{limit: 10_000}
		ds.generation = 1
		s := busySession(ds, time.Hour)
		var err error
		for i := range 100 {
			_, err = s.Transact(t.Context(), request(30_000+i%7))
			if _, err := s.Transact(t.Context(), request(8_000)); err != nil {
				t.Fatal(err)
			}
		}
		if ds.cuts > tooOften || !errors.Is(err, errs.ErrUnavailable) || !errors.Is(err, driver.ErrTooLarge) || Transient(err) {
			t.Errorf("%d connections were lost, and the error is %v; want %d, and a definite error", ds.cuts, err, tooOften)
		}
		time.Sleep(2 * longestForget)
		ds.limit = 50_000
		for range tooOften {
			_, err = s.Transact(t.Context(), request(30_000))
			time.Sleep(longestForget)
		}
		if err != nil {
			t.Errorf("after the limit was raised: %v", err)
		}
	})
}

// A client that knows its servers' limit sends no request that is larger.
func TestKnownLimit(t *testing.T) {
	ds := &limited{limit: 20_000}
	ds.generation = 1
	s := busySession(ds, time.Hour)
	s.settings.JuteMaxbuffer = ds.limit
	_, large := s.Transact(t.Context(), request(ds.limit+1))
	_, fits := s.Transact(t.Context(), request(ds.limit))
	if !errors.Is(large, driver.ErrTooLarge) || fits != nil || ds.cuts > 0 || s.commits.most() > ds.limit/2 {
		t.Error(fmt.Errorf("one byte too many: %w; one that fits: %w; %d lost connections, groups of %d bytes", large, fits, ds.cuts, s.commits.most()))
	}
}
