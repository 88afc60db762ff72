package faultdriver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

var open = driver.OpenACL(driver.PermAll)

// bed is an ensemble with two sessions: faults strike the requests of struck, and not those of
// plain.
type bed struct {
	*testing.T
	ensemble *memdriver.Ensemble
	struck   driver.Session
	plain    driver.Session
}

// inBubble runs test in a synctest bubble, with the faults of inj and a znode /n.
func inBubble(t *testing.T, inj faultdriver.Injector, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, ensemble: memdriver.New()}
		t.Cleanup(func() { _ = b.ensemble.Close() })
		b.plain = b.connect(b.ensemble.Connector())
		b.must(b.plain.Create(t.Context(), "/n", nil, driver.Persistent, open))
		b.struck = b.connect(faultdriver.Wrap(b.ensemble.Connector(), inj))
		test(b)
	})
}

func (b *bed) connect(c driver.Connector) driver.Session {
	b.Helper()
	s, err := c.Connect(b.Context(), 10*time.Second)
	if err != nil {
		b.Fatalf("connect: %v", err)
	}
	b.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = c.Close()
	})
	return s
}

func (b *bed) must(_ any, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// create creates a path in the session that faults strike.
func (b *bed) create(ctx context.Context, path string) error {
	_, err := b.struck.Create(ctx, path, []byte("x"), driver.Persistent, open)
	return err
}

func (b *bed) exists(path string) bool {
	b.Helper()
	_, err := b.plain.Get(context.Background(), path)
	if err != nil && !errors.Is(err, driver.ErrNoNode) {
		b.Fatal(err)
	}
	return err == nil
}

func (b *bed) injected(err, want error) {
	b.Helper()
	var e *faultdriver.Error
	if !errors.Is(err, want) || !errors.As(err, &e) {
		b.Fatalf("error is %v, want an injected one that matches %q", err, want)
	}
}

func TestFaultBeforeTheOperationAppliesNothing(t *testing.T) {
	for _, c := range []struct {
		fault faultdriver.Fault
		want  error
	}{
		{faultdriver.Fail(driver.ErrNoAuth), driver.ErrNoAuth},
		{faultdriver.NotSent(), driver.ErrNotSent},
		{faultdriver.Drop(), driver.ErrConnLoss},
	} {
		inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.Once(c.fault)), func(b *bed) {
			b.injected(b.create(b.Context(), "/a"), c.want)
			if b.exists("/a") {
				b.Errorf("%v applied the create", c.fault)
			}
			b.must(nil, b.create(b.Context(), "/a"))
		})
	}
}

func TestLostReplyLeavesTheOperationApplied(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.Once(faultdriver.LoseReply())), func(b *bed) {
		b.injected(b.create(b.Context(), "/a"), driver.ErrConnLoss)
		if err := b.create(b.Context(), "/a"); !errors.Is(err, driver.ErrNodeExists) || !b.exists("/a") {
			b.Errorf("second create: error %v, want ErrNodeExists; the node exists: %t", err, b.exists("/a"))
		}
	})
}

func TestEveryMethodCanBeStruckAndYieldsNothing(t *testing.T) {
	log := faultdriver.NewLog(faultdriver.If("not connect", func(op faultdriver.Op) bool { return op.Kind != faultdriver.Connect }, faultdriver.LoseReply()))
	inBubble(t, log, func(b *bed) {
		s, ctx := b.struck, b.Context()
		b.must(b.plain.Set(ctx, "/n", []byte("data"), driver.AnyVersion))
		b.must(b.plain.Create(ctx, "/n/child", nil, driver.Persistent, open))
		path, err := s.Create(ctx, "/a", nil, driver.Persistent, open)
		b.injected(err, driver.ErrConnLoss)
		node, err := s.Get(ctx, "/n")
		b.injected(err, driver.ErrConnLoss)
		stat, err := s.Set(ctx, "/n", nil, driver.AnyVersion)
		b.injected(err, driver.ErrConnLoss)
		names, parent, err := s.Children(ctx, "/n")
		b.injected(err, driver.ErrConnLoss)
		watched, events, err := s.Watch(ctx, "/n")
		b.injected(err, driver.ErrConnLoss)
		children, listed, changes, err := s.WatchChildren(ctx, "/n")
		b.injected(err, driver.ErrConnLoss)
		there, found, events2, err := s.WatchExists(ctx, "/n")
		b.injected(err, driver.ErrConnLoss)
		if children != nil || listed != (driver.Stat{}) || changes != nil || there != (driver.Stat{}) || found || events2 != nil {
			b.Error("a watch whose reply was lost returned a result")
		}
		results, err := s.Multi(ctx, []driver.Op{driver.CheckOp("/n", driver.AnyVersion), driver.DeleteOp("/n/child", 0)})
		b.injected(err, driver.ErrConnLoss)
		b.injected(s.Delete(ctx, "/a", driver.AnyVersion), driver.ErrConnLoss)
		b.injected(s.Sync(ctx, "/n"), driver.ErrConnLoss)
		zero := driver.Stat{}
		if path != "" || node.Data != nil || stat != zero || names != nil || parent != zero || watched.Data != nil || events != nil || results != nil {
			b.Error("a request whose reply was lost returned a result")
		}
		b.injected(s.Close(ctx), driver.ErrConnLoss)
		var kinds []faultdriver.Kind
		for i, strike := range log.Strikes() {
			kinds = append(kinds, strike.Op.Kind)
			if strike.Op.Session != s.ID() || strike.Op.Seq != uint64(i+2) || strike.Op.Attempt != 1 {
				b.Errorf("strike %d was on %v, want the session's id, number %d and attempt 1", i, strike.Op, i+2)
			}
		}
		if len(kinds) != 11 || kinds[7] != faultdriver.Multi || len(log.Strikes()[7].Op.Paths) != 2 {
			b.Errorf("want 11 strikes, the eighth on a multi with 2 paths; the log is %v", log.Text())
		}
	})
}

func TestDelayHoldsTheRequestBack(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.Delay(3*time.Second)), func(b *bed) {
		begun := time.Now()
		b.must(nil, b.create(b.Context(), "/a"))
		if took := time.Since(begun); took < 3*time.Second {
			b.Errorf("a create delayed by 3s took %v", took)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		err := b.create(ctx, "/b")
		b.injected(err, driver.ErrNotSent)
		b.injected(err, context.DeadlineExceeded)
		if b.exists("/b") {
			b.Error("a request that was held back was applied after its context had ended")
		}
	})
}

func TestDelayReplyHoldsTheReplyBack(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.DelayReply(3*time.Second)), func(b *bed) {
		begun := time.Now()
		b.must(nil, b.create(b.Context(), "/a"))
		if took := time.Since(begun); took < 3*time.Second {
			b.Errorf("a reply delayed by 3s came after %v", took)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		err := b.create(ctx, "/b")
		b.injected(err, driver.ErrConnLoss)
		b.injected(err, context.DeadlineExceeded)
		if !b.exists("/b") {
			b.Error("the request was not applied")
		}
	})
}

func TestHangLastsUntilTheContextOrTheSessionEnds(t *testing.T) {
	for _, c := range []struct {
		fault   faultdriver.Fault
		applied bool
	}{{faultdriver.Hang(), false}, {faultdriver.HangReply(), true}} {
		inBubble(t, faultdriver.On(faultdriver.Create, c.fault), func(b *bed) {
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			begun := time.Now()
			err := b.create(ctx, "/a")
			b.injected(err, driver.ErrConnLoss)
			b.injected(err, context.DeadlineExceeded)
			if took := time.Since(begun); took != time.Hour || b.exists("/a") != c.applied {
				b.Errorf("%v: the call took %v, want 1h; applied: %t, want %t", c.fault, took, b.exists("/a"), c.applied)
			}
			done := make(chan error)
			go func() { done <- b.create(b.Context(), "/b") }()
			synctest.Wait()
			b.must(nil, b.struck.Close(b.Context()))
			b.injected(<-done, driver.ErrConnLoss)
		})
	}
}

func TestRequestThatCanNotBeSentIsNotStruck(t *testing.T) {
	counter := faultdriver.NewCounter(faultdriver.On(faultdriver.Create, faultdriver.LoseReply()))
	inBubble(t, counter, func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if err := b.create(ctx, "/a"); !errors.Is(err, driver.ErrNotSent) {
			b.Errorf("create with an ended context: error %v, want ErrNotSent", err)
		}
		b.must(nil, b.struck.Close(b.Context()))
		if err := b.create(b.Context(), "/a"); !errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrConnLoss) {
			b.Errorf("create on a closed session: error %v, want ErrClosed only", err)
		}
		if counter.Struck() != 0 {
			b.Errorf("%d requests were struck, want 0", counter.Struck())
		}
	})
}

func TestAttemptsAreCountedBySessionKindAndPaths(t *testing.T) {
	retries := faultdriver.If("first attempt", func(op faultdriver.Op) bool { return op.Attempt == 1 }, faultdriver.On(faultdriver.Create, faultdriver.Drop()))
	inBubble(t, retries, func(b *bed) {
		for _, path := range []string{"/a", "/b"} {
			b.injected(b.create(b.Context(), path), driver.ErrConnLoss)
			b.must(nil, b.create(b.Context(), path))
		}
	})
}

func TestConnectCanFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New()
		defer ensemble.Close()
		var gate faultdriver.Gate
		c := faultdriver.Wrap(ensemble.Connector(), faultdriver.On(faultdriver.Connect, faultdriver.Script(
			faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.Late(&gate))))
		defer c.Close()
		for range 3 {
			if s, err := c.Connect(t.Context(), 10*time.Second); !errors.Is(err, driver.ErrConnLoss) || s != nil {
				t.Fatalf("connect returned session %v and error %v, want ErrConnLoss", s, err)
			}
		}
		s, err := c.Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if u := faultdriver.Unwrap(s); u == s || u.ID() != s.ID() || faultdriver.Unwrap(u) != u {
			t.Error("Unwrap did not return the wrapped session")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// The bubble does not end while goroutines run in it. So its end shows that the
		// sessions that no caller got have ended.
	})
}
