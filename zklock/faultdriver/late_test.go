package faultdriver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
)

func TestLateRequestIsAppliedWhenReleased(t *testing.T) {
	var gate faultdriver.Gate
	inBubble(t, faultdriver.Writes(faultdriver.First(3, faultdriver.Late(&gate))), func(b *bed) {
		s, ctx := b.struck, b.Context()
		short, cancel := context.WithCancel(ctx)
		data := []byte("before")
		_, err := s.Create(short, "/a", data, driver.Persistent, open)
		b.injected(err, driver.ErrConnLoss)
		// A request that is under way is not affected when the caller's context ends, or
		// when the caller changes its buffer.
		cancel()
		copy(data, "after!")
		_, err = s.Set(ctx, "/a", []byte("set"), driver.AnyVersion)
		b.injected(err, driver.ErrConnLoss)
		_, err = s.Multi(ctx, []driver.Op{driver.DeleteOp("/n", driver.AnyVersion)})
		b.injected(err, driver.ErrConnLoss)
		if b.exists("/a") || !b.exists("/n") || gate.Waiting() != 3 {
			b.Fatalf("a request was applied before the release, or not all 3 wait: %d wait", gate.Waiting())
		}
		if n := gate.Release(); n != 3 || gate.Waiting() != 0 {
			b.Errorf("Release applied %d, and %d still wait; want 3 and 0", n, gate.Waiting())
		}
		node, err := b.plain.Get(ctx, "/a")
		b.must(node, err)
		if string(node.Data) != "set" || node.Stat.Version != 1 || b.exists("/n") {
			b.Errorf("after the release, /a has data %q and stat %+v, and /n exists: %t", node.Data, node.Stat, b.exists("/n"))
		}
		if n := gate.Release(); n != 0 {
			b.Errorf("a second Release applied %d requests, want 0", n)
		}
	})
}

func TestLateRequestKeepsTheDataOfTheCall(t *testing.T) {
	var gate faultdriver.Gate
	inBubble(t, faultdriver.Writes(faultdriver.Late(&gate)), func(b *bed) {
		data := []byte("before")
		_, err := b.struck.Multi(b.Context(), []driver.Op{driver.CreateOp("/multi", data, driver.Persistent, open)})
		b.injected(err, driver.ErrConnLoss)
		_, err = b.struck.Create(b.Context(), "/create", data, driver.Persistent, open)
		b.injected(err, driver.ErrConnLoss)
		_, err = b.struck.Set(b.Context(), "/n", data, driver.AnyVersion)
		b.injected(err, driver.ErrConnLoss)
		copy(data, "after!")
		gate.Release()
		for _, path := range []string{"/multi", "/create", "/n"} {
			if node, err := b.plain.Get(b.Context(), path); err != nil || string(node.Data) != "before" {
				b.Errorf("data of %s: %q, error %v; want the data of the call", path, node.Data, err)
			}
		}
	})
}

func TestLateRequestOfAClosedSessionIsNeverApplied(t *testing.T) {
	var gate faultdriver.Gate
	inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.Script(faultdriver.Late(&gate), faultdriver.LateAfter(time.Hour))), func(b *bed) {
		b.injected(b.create(b.Context(), "/a"), driver.ErrConnLoss)
		b.injected(b.create(b.Context(), "/b"), driver.ErrConnLoss)
		begun := time.Now()
		b.must(nil, b.struck.Close(b.Context()))
		if took := time.Since(begun); took >= time.Hour {
			b.Errorf("Close waited %v for a request that it must drop", took)
		}
		if gate.Waiting() != 0 || gate.Release() != 0 || b.exists("/a") || b.exists("/b") {
			b.Error("a request of a closed session was applied, or still waits at the gate")
		}
	})
}

func TestLateAfterAppliesAfterThatTime(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Create, faultdriver.LateAfter(3*time.Second)), func(b *bed) {
		b.injected(b.create(b.Context(), "/a"), driver.ErrConnLoss)
		begun := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for !b.exists("/a") {
			if time.Since(begun) > time.Minute {
				b.Fatal("the request was not applied within a minute")
			}
			<-tick.C
		}
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			b.Errorf("the request was applied after %v, want 3s", took)
		}
	})
}

func TestLostEventNeverComesButTheEndOfTheSessionDoes(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Watch, faultdriver.Once(faultdriver.LoseEvent())), func(b *bed) {
		_, lost, err := b.struck.Watch(b.Context(), "/n")
		b.must(lost, err)
		_, kept, err := b.struck.Watch(b.Context(), "/n")
		b.must(kept, err)
		b.must(nil, b.plain.Delete(b.Context(), "/n", driver.AnyVersion))
		if event := <-kept; event.Type != driver.EventDeleted {
			b.Errorf("the other watch delivered %+v, want a deletion", event)
		}
		synctest.Wait()
		select {
		case event := <-lost:
			b.Fatalf("the lost event was delivered: %+v", event)
		default:
		}
		b.must(nil, b.struck.Close(b.Context()))
		// Close has waited for everything that runs in the background.
		select {
		case event := <-lost:
			if event.Type != driver.EventSession || event.Path != "/n" || event.Err != driver.ErrClosed {
				b.Errorf("at the end of the session the watch delivered %+v, want ErrClosed for /n", event)
			}
		default:
			b.Fatal("Close returned before the watch had ended")
		}
		if _, open := <-lost; open {
			b.Error("the watch's channel was not closed after its event")
		}
	})
}

func TestEventsOfAllWatchesCanBeLost(t *testing.T) {
	inBubble(t, faultdriver.LoseEvent(), func(b *bed) {
		_, _, children, err := b.struck.WatchChildren(b.Context(), "/n")
		b.must(children, err)
		_, _, missing, err := b.struck.WatchExists(b.Context(), "/n/child")
		b.must(missing, err)
		b.must(b.plain.Create(b.Context(), "/n/child", nil, driver.Persistent, open))
		synctest.Wait()
		select {
		case event := <-children:
			b.Errorf("the lost event of the children was delivered: %+v", event)
		case event := <-missing:
			b.Errorf("the lost event of the creation was delivered: %+v", event)
		default:
		}
		b.ensemble.KillSession(b.struck.ID())
		for _, lost := range []<-chan driver.Event{children, missing} {
			if event := <-lost; event.Err != driver.ErrSessionExpired {
				b.Errorf("at the end of the session the watch delivered %+v, want ErrSessionExpired", event)
			}
		}
	})
}

func TestLateWatchesLoseTheirReplies(t *testing.T) {
	late := faultdriver.LateAfter(time.Hour)
	inBubble(t, faultdriver.Any(faultdriver.On(faultdriver.WatchChildren, late), faultdriver.On(faultdriver.WatchExists, late)), func(b *bed) {
		_, _, _, err := b.struck.WatchChildren(b.Context(), "/n")
		b.injected(err, driver.ErrConnLoss)
		_, _, _, err = b.struck.WatchExists(b.Context(), "/n")
		b.injected(err, driver.ErrConnLoss)
		if armed := memcontrol.Of(b.ensemble).Watched()["/n"]; armed != 2 {
			b.Errorf("%d watches are armed, want those of both calls", armed)
		}
	})
}

func TestLostEventDoesNotHideExpiry(t *testing.T) {
	inBubble(t, faultdriver.LoseEvent(), func(b *bed) {
		_, lost, err := b.struck.Watch(b.Context(), "/n")
		b.must(lost, err)
		b.must(nil, b.plain.Delete(b.Context(), "/n", driver.AnyVersion))
		b.ensemble.KillSession(b.struck.ID())
		if event := <-lost; event.Type != driver.EventSession || event.Err != driver.ErrSessionExpired {
			b.Errorf("at the end of the session the watch delivered %+v, want ErrSessionExpired", event)
		}
	})
}

func TestDelayedEventComesLater(t *testing.T) {
	inBubble(t, faultdriver.DelayEvent(3*time.Second), func(b *bed) {
		_, events, err := b.struck.Watch(b.Context(), "/n")
		b.must(events, err)
		begun := time.Now()
		b.must(nil, b.plain.Delete(b.Context(), "/n", driver.AnyVersion))
		if event := <-events; event.Type != driver.EventDeleted || event.Path != "/n" {
			b.Errorf("the watch delivered %+v, want the deletion of /n", event)
		}
		if took := time.Since(begun); took < 3*time.Second {
			b.Errorf("the event came after %v, want 3s", took)
		}
	})
}

func TestDelayedEventIsNotDelayedBeyondTheEndOfTheSession(t *testing.T) {
	inBubble(t, faultdriver.DelayEvent(time.Hour), func(b *bed) {
		_, events, err := b.struck.Watch(b.Context(), "/n")
		b.must(events, err)
		b.must(nil, b.plain.Delete(b.Context(), "/n", driver.AnyVersion))
		synctest.Wait()
		begun := time.Now()
		b.must(nil, b.struck.Close(b.Context()))
		if event, took := <-events, time.Since(begun); event.Type != driver.EventDeleted || took >= time.Hour {
			b.Errorf("the watch delivered %+v after %v; want the deletion, at the end of the session", event, took)
		}
	})
}

func TestCloseEndsTheSessionWhateverStrikes(t *testing.T) {
	for _, fault := range []faultdriver.Fault{
		faultdriver.Fail(driver.ErrThrottled), faultdriver.NotSent(), faultdriver.Drop(), faultdriver.LoseReply(),
		faultdriver.LateAfter(time.Hour), faultdriver.Hang(), faultdriver.HangReply(), faultdriver.DelayReply(time.Hour),
	} {
		inBubble(t, faultdriver.On(faultdriver.Close, fault), func(b *bed) {
			b.must(b.struck.Create(b.Context(), "/e", nil, driver.Ephemeral, open))
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			err := b.struck.Close(ctx)
			if err == nil || b.exists("/e") {
				b.Errorf("%v: close returned %v, want an error; the ephemeral node exists: %t, want false", fault, err, b.exists("/e"))
			}
			if again := b.struck.Close(b.Context()); again != err {
				b.Errorf("%v: the first close returned %v, and the second %v", fault, err, again)
			}
			if state, _ := b.struck.State(); state != driver.Closed {
				b.Errorf("%v: the session is %v, want closed", fault, state)
			}
		})
	}
}

func TestDelayedCloseEndsTheSessionLater(t *testing.T) {
	inBubble(t, faultdriver.On(faultdriver.Close, faultdriver.Delay(3*time.Second)), func(b *bed) {
		begun := time.Now()
		done := make(chan error)
		go func() { done <- b.struck.Close(b.Context()) }()
		synctest.Wait()
		// A second caller waits for the first one's result, also after its own context.
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		b.must(nil, b.struck.Close(ctx))
		if took := time.Since(begun); took < 3*time.Second {
			b.Errorf("the second close returned after %v, before the first", took)
		}
		b.must(nil, <-done)
		if took := time.Since(begun); took < 3*time.Second {
			b.Errorf("the session was closed after %v, want 3s", took)
		}
	})
}
