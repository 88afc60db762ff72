package zklock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// unnoticed is a context whose deadline passes without a sign, as on a machine that is so busy that the goroutine
// which ends the context does not run.
type unnoticed struct {
	context.Context
	deadline time.Time
}

func (c unnoticed) Deadline() (time.Time, bool) { return c.deadline, true }

// A lock comes after the deadline of its caller, whose context has not ended, since the machine is too busy. The caller gets
// an error, and the lock goes to others: at each point where an acquisition waits for what brings it a lock.
func TestLockThatComesAfterTheDeadlineIsGivenBack(t *testing.T) {
	const held = 18 * time.Second
	alone := []zklock.AcquireOption{zklock.WithoutHandover()}
	for _, tt := range []struct {
		name   string
		opts   []zklock.AcquireOption
		others bool          // the holder is another client
		rtt    time.Duration // 0: another holds the lock for a time
		try    bool
	}{
		{name: "hand-over"},
		{name: "at the head of the local queue", others: true},
		{name: "at the gate", opts: alone},
		{name: "let through the gate", opts: alone, others: true},
		{name: "candidate", opts: []zklock.AcquireOption{zklock.WithCandidacy()}, others: true},
		{name: "during its create", rtt: 400 * time.Millisecond},
		{name: "during a try", rtt: 400 * time.Millisecond, try: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, wait := memdriver.New(memdriver.WithLatency(tt.rtt/2)), tt.rtt/2
				c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				mustRelease(t, mustLock(t)(c.Mutex("m").Acquire(t.Context())))
				if tt.rtt == 0 {
					wait = 2 * time.Second
					holder := c
					if tt.others {
						holder = d
					}
					l := mustLock(t)(holder.Mutex("m").Acquire(t.Context(), tt.opts...))
					time.AfterFunc(held, func() { mustRelease(t, l) })
				}
				ctx := unnoticed{t.Context(), time.Now().Add(wait)}
				acquire := c.Mutex("m").Acquire
				if tt.try {
					acquire = c.Mutex("m").TryAcquire
				}
				l, err := acquire(ctx, tt.opts...)
				if l != nil || !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after %v: %v, %v, want no lock: the deadline has passed", wait, l, err)
				}
				mustRelease(t, mustLock(t)(d.Mutex("m").Acquire(t.Context(), zklock.WithWait(time.Minute))))
				time.Sleep(time.Minute)
				if n := nodes(e); n != 0 {
					t.Errorf("%d nodes left", n)
				}
				if s := c.Stats(); s.Held != 0 || s.Waiting != 0 {
					t.Errorf("%+v, want no lock", s)
				}
			})
		})
	}
}

// A caller is cancelled while the last answer that its lock needs is on its way to its goroutine. It gets no lock.
func TestLockWhoseCallerIsCancelledAtTheGrantIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has hung up")
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			return ctx, func(error) {
				if e.Kind == "list" {
					cancel(gone)
				}
			}
		}}
		e := memdriver.New()
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		other := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("s", 2).Acquire(t.Context()))
		if l, err := c.Semaphore("s", 2).Acquire(ctx); l != nil || !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, gone) {
			t.Errorf("%v, %v, want no lock", l, err)
		}
		mustRelease(t, other)
		time.Sleep(time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// endsAtALook is a context that ends when it is asked for its error the last of so many times.
type endsAtALook struct {
	context.Context
	looks *atomic.Int32
}

func (c endsAtALook) Err() error {
	if c.looks.Add(-1) > 0 {
		return c.Context.Err()
	}
	return context.Canceled
}

// A caller is cancelled at any look at its context, also of a lock that it gets without a wait: at each of them the
// acquisition either has no lock or one that can be released.
func TestCallerThatIsCancelledAtAnyLook(t *testing.T) {
	for _, keep := range []string{"0s", "1h"} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := keeping(t, e, "keep", keep)
			refused := 0
			for looks := int32(1); looks < 20; looks++ {
				use(t, c.Mutex("m"))
				ctx := endsAtALook{t.Context(), new(atomic.Int32)}
				ctx.looks.Store(looks)
				l, err := c.Mutex("m").Acquire(ctx)
				switch {
				case err == nil:
					mustRelease(t, l)
				case !errors.Is(err, context.Canceled) || l != nil:
					t.Errorf("cancelled at look %d: %v, %v", looks, l, err)
				default:
					refused++
				}
			}
			use(t, c.Mutex("m"))
			if refused == 0 {
				t.Errorf("keep %s: no caller was refused", keep)
			}
		})
	}
}
