// Package zklock has the names of the real one that the tests call.
package zklock

import (
	"context"
	"errors"
)

var (
	ErrLost        = errors.New("lost")
	ErrNotAcquired = errors.New("not acquired")
)

type Client struct{}

func (*Client) Mutex(name string) *Mutex                      { return nil }
func (*Client) RWMutex(name string) *RWMutex                  { return nil }
func (*Client) Semaphore(name string, permits int) *Semaphore { return nil }
func (*Client) Ping(ctx context.Context) error                { return nil }
func (*Client) Close() error                                  { return nil }

type AcquireOption interface{ apply() }

type Acquirer interface {
	Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)
	TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)
}

type Mutex struct{}

func (*Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)    { return nil, nil }
func (*Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) { return nil, nil }

type RWMutex struct{}

func (*RWMutex) Reader() *Reader { return nil }
func (*RWMutex) Writer() *Mutex  { return nil }

type Reader struct{}

func (*Reader) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)    { return nil, nil }
func (*Reader) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) { return nil, nil }

type Semaphore struct{}

func (*Semaphore) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) { return nil, nil }
func (*Semaphore) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return nil, nil
}

type Group struct{}

func All(acquirers ...Acquirer) *Group { return nil }

func (*Group) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)    { return nil, nil }
func (*Group) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) { return nil, nil }

type Token struct{}

type Lock struct{}

func (*Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return parent, func() {}
}
func (*Lock) Done() <-chan struct{}             { return nil }
func (*Lock) Err() error                        { return nil }
func (*Lock) Release(ctx context.Context) error { return nil }
func (*Lock) Token() Token                      { return Token{} }
func (*Lock) Valid() bool                       { return false }
func (*Lock) Verify(ctx context.Context) error  { return nil }

func Detach(ctx context.Context) context.Context { return ctx }

func FromContext(ctx context.Context) (*Lock, bool) { return nil, false }

func Do(ctx context.Context, a Acquirer, fn func(ctx context.Context, lock *Lock) error, opts ...AcquireOption) error {
	return nil
}
