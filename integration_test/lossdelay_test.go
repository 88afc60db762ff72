package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestLossDelayOnRealServers: the holder cannot reach the server until its lock is lost. It
// reaches the server again right after that, when its session is still alive. The next
// client has no loss_delay and does not know of the holder's. The test measures the time
// from the loss until the next client's Acquire returns. The holder's client says when the loss
// was: the test learns of it later.
func TestLossDelayOnRealServers(t *testing.T) {
	t.Parallel()
	const delay = 5 * time.Second // a busy machine takes seconds to close a session and to grant a lock
	e := sharedEnsemble(t)
	for _, c := range []struct {
		name string
		keys []string
		most time.Duration // 0: no limit
	}{
		{"with", []string{"loss_delay", delay.String()}, 0},
		{"without", nil, delay}, // otherwise the first case would prove nothing
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := proxy.New(e.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			holder := dial(t, p.Addr(), quick(c.keys...))
			other := dial(t, e.Hosts(), quick())
			held := acquire(t, holder.Mutex("x"))
			waiting := try(t, within(t), other.Mutex("x"))
			eventually(t, "the next client is in the queue", func() bool {
				q, err := other.Contenders(within(t), "x")
				return err == nil && len(q) == 2
			})
			p.Stall(proxy.Both)
			receive(t, "the loss", held.Done())
			p.Heal()
			next := waiting.must(t)
			granted := time.Now()
			var lost *zklock.LostError
			if !errors.As(held.Err(), &lost) || !errors.Is(lost, zklock.ErrLeaseOver) {
				t.Fatalf("the lock was lost because of %v, want ErrLeaseOver", held.Err())
			}
			gap := granted.Sub(lost.At)
			if c.most == 0 && gap < delay {
				t.Errorf("the next client acquired the lock %v after the loss, want at least %v", gap, delay)
			}
			if c.most != 0 && gap >= c.most {
				t.Errorf("the next client acquired the lock %v after the loss, too late: the holder has not set loss_delay and has closed its session", gap)
			}
			t.Logf("%v after the loss", gap)
			began := time.Now()
			again := try(t, within(t), holder.Mutex("x"))
			release(t, next)
			release(t, again.must(t))
			if d := time.Since(began); c.most == 0 && d >= delay+atOnce {
				t.Errorf("a release was followed by a grant after %v, want no delay", d)
			}
		})
	}
}
