package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// pipe is a server's stream whose RecvMsg ends when the test says so, and not with the context.
// The first message is there.
type pipe struct {
	grpc.ServerStream
	ctx  context.Context
	some bool
	recv func() error
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) RecvMsg(any) error {
	if !p.some {
		p.some = true
		return nil
	}
	return p.recv()
}

// handle serves such a stream, and calls handler when the stream has its lock.
func (w *world) handle(ctx context.Context, first bool, recv func() error, handler func(grpc.ServerStream) error) error {
	info := &grpc.StreamServerInfo{FullMethod: "/shop/Upload", IsClientStream: true}
	return interceptors.StreamServerInterceptor(w.fixed, firstIf(first)...)(nil, &pipe{ctx: ctx, recv: recv}, info, func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(nil); err != nil {
			return err
		}
		return handler(stream)
	})
}

// However a handler's context ends, its RecvMsg ends with it, and gives no message afterwards.
func TestRecvMsgEndsWithTheContext(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled} {
		for _, first := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(t.Context())
				if code == codes.DeadlineExceeded {
					ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				} else {
					time.AfterFunc(time.Minute, cancel)
				}
				defer cancel()
				late := make(chan struct{})
				began := time.Now()
				_ = w.handle(ctx, first, func() error { <-late; return nil }, func(stream grpc.ServerStream) error {
					if err := stream.RecvMsg(nil); status.Code(err) != code || time.Since(began) != time.Minute {
						t.Errorf("first message %v: RecvMsg returned %v after %v, want %v after a minute", first, err, time.Since(began), code)
					}
					w.wantHeld()
					w.ensemble.ExpireAll()
					close(late)
					synctest.Wait()
					if stream.RecvMsg(nil) == nil {
						t.Error("the second RecvMsg got a message after the loss")
					}
					return nil
				})
			})
		}
	}
}

// A handler waits for a message. If its lock is lost before the message arrives, the message is not
// delivered.
func TestNoMessageAfterTheLoss(t *testing.T) {
	for i := range 40 { // RecvMsg has a choice: the message, or the end of the context
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var held *zklock.Lock
			_ = w.handle(t.Context(), i%2 == 1, func() error { w.ensemble.ExpireAll(); <-held.Done(); return nil }, func(stream grpc.ServerStream) error {
				held, _ = zklock.FromContext(stream.Context())
				if err := stream.RecvMsg(nil); !errors.Is(err, zklock.ErrLost) {
					t.Errorf("RecvMsg: %v, want the loss", err)
				}
				return nil
			})
		})
	}
}

// A handler that has released its lock goes on to receive.
func TestRecvMsgAfterTheRelease(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			if err := w.handle(t.Context(), first, func() error { time.Sleep(time.Minute); return nil }, func(stream grpc.ServerStream) error {
				held, _ := zklock.FromContext(stream.Context())
				if err := held.Release(t.Context()); err != nil {
					return err
				}
				return stream.RecvMsg(nil)
			}); err != nil {
				t.Errorf("first message %v: the call ended with %v", first, err)
			}
		})
	}
}
