package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestFailBusy: goroutines hold the lock for 100 ms each, one after the other. A caller behind nine of them that can
// wait for 500 ms is refused at once, with an estimate, and without a request. One that can wait for longer, or
// without an end, gets its turn; and so does one without the option that is served in time.
func TestFailBusy(t *testing.T) {
	for _, c := range []struct {
		what string
		of   func(c *zklock.Client) zklock.Acquirer
		opts []zklock.AcquireOption
	}{
		{"mutex", func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }, nil},
		{"mutex without hand-over", func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }, []zklock.AcquireOption{zklock.WithoutHandover()}},
		{"permit", func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 1) }, nil},
		{"all", func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) }, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				client := connect(t, e.Connector(), nil)
				opts := append([]zklock.AcquireOption{zklock.WithFailBusy()}, c.opts...)
				served := make(chan error, 30)
				use := func(ctx context.Context) {
					l, err := c.of(client).Acquire(ctx, opts...)
					if err == nil {
						time.Sleep(100 * time.Millisecond)
						err = l.Release(context.Background())
					}
					served <- err
				}
				for range 20 {
					go use(t.Context())
				}
				synctest.Wait()
				// The first one with a bound has the client measure; it is served too late, since nothing was known.
				short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				if _, err := c.of(client).Acquire(short, opts...); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrBusy) {
					t.Errorf("the first with a bound: %v", err)
				}
				time.Sleep(500 * time.Millisecond)
				began := time.Now()
				var busy *zklock.BusyError
				spent := cost(e, func() {
					_, err := c.of(client).Acquire(t.Context(), append(opts, zklock.WithWait(500*time.Millisecond))...)
					if !errors.Is(err, zklock.ErrBusy) || !errors.Is(err, zklock.ErrTooManyWaiters) || errors.Is(err, zklock.ErrNotAcquired) || !errors.As(err, &busy) {
						t.Errorf("behind nine others: %v, want ErrBusy", err)
					}
				})
				if took := time.Since(began); took != 0 || spent.Multis != 0 {
					t.Errorf("refused after %v, with %+v", took, spent)
				}
				if busy != nil && (busy.Wait < 900*time.Millisecond || busy.Wait > 1300*time.Millisecond) {
					t.Errorf("an estimate of %v behind nine waits of 100ms each", busy.Wait)
				}
				long, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				use(long)
				for i := range 21 {
					select {
					case err := <-served:
						if err != nil {
							t.Error(err)
						}
					case <-time.After(10 * time.Second):
						t.Fatalf("only %d of 21 have had the lock", i)
					}
				}
			})
		})
	}
}

// Readers that wait share one turn: one more is served with them, and is not refused because they are many.
func TestReadersAreNotBusyBehindReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, memdriver.New().Connector(), nil)
		rw := client.RWMutex("x")
		use := func(a zklock.Acquirer) error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			l, err := a.Acquire(ctx, zklock.WithFailBusy())
			if err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
			return l.Release(context.Background())
		}
		served := make(chan error)
		begin := func(n int, a zklock.Acquirer) {
			for range n {
				go func() { served <- use(a) }()
			}
			synctest.Wait()
		}
		wait := func(n int) {
			for range n {
				if err := <-served; err != nil {
					t.Error(err)
				}
			}
		}
		begin(6, rw.Writer())
		wait(3) // so the client knows how long a turn is
		begin(50, rw.Reader())
		wait(53)
	})
}
