package interceptors_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// TestRecvLeftBehindGetsNoLock: a handler returns while another goroutine is in its first
// Recv. That goroutine waits for the message, waits for the lock, or is just getting it.
func TestRecvLeftBehindGetsNoLock(t *testing.T) {
	t.Run("waiting for the client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			left := make(chan error, 1)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				go func() {
					_, err := stream.Recv()
					left <- err
				}()
				time.Sleep(time.Second)
				return nil
			}}, onServer(w.fixed, interceptors.WithFirstMessage())...)
			stream, err := newShop(conn).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := drain[text](stream); err != nil {
				t.Error(err)
			}
			if err := <-left; err == nil {
				t.Error("Recv returned a message after the handler's return")
			}
			if len(w.Locks()) != 0 {
				t.Error("a lock was acquired")
			}
		})
	})
	t.Run("waiting for the lock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			release := w.Hold("orders/42")
			left := make(chan error, 1)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				go func() {
					_, err := stream.Recv()
					left <- err
				}()
				<-w.waiting
				return nil
			}}, onServer(w.fixed, interceptors.WithFirstMessage())...)
			if err := chat(t.Context(), conn); err != nil {
				t.Error(err)
			}
			if err := <-left; err == nil {
				t.Error("Recv returned a message after the handler's return")
			}
			if st := w.client.Stats(); st.Waiting != 0 {
				t.Errorf("%d acquisitions still wait, want none", st.Waiting)
			}
			release()
		})
	})
	t.Run("at the grant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			returned := make(chan struct{})
			left := make(chan error, 1)
			// An Acquirer that gets its lock after the handler has returned.
			late := lateGrant{w.client.Mutex("orders/42"), returned}
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				go func() {
					_, err := stream.Recv()
					left <- err
				}()
				time.Sleep(time.Second)
				return nil
			}}, grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
				defer close(returned)
				return h(srv, ss)
			}, interceptors.StreamServerInterceptor(func(context.Context, interceptors.Call) zklock.Acquirer { return late }, interceptors.WithFirstMessage())))
			if err := chat(t.Context(), conn); err != nil {
				t.Error(err)
			}
			if err := <-left; err == nil {
				t.Error("Recv returned a message after the handler's return")
			}
			if len(w.Locks()) != 1 {
				t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
			}
		})
	})
}

// lateGrant acquires when a channel is closed, even if its context has ended.
type lateGrant struct {
	zklock.Acquirer
	when <-chan struct{}
}

func (l lateGrant) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	<-l.when
	return l.Acquirer.Acquire(context.WithoutCancel(ctx), opts...)
}

// TestStreamWithoutAMessageIsPickedForAllTheSame: a handler's work at the end of a stream
// needs the lock even if no message came before.
func TestStreamWithoutAMessageIsPickedForAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := func() *shop {
			return &shop{upload: func(stream grpc.ClientStreamingServer[text, text]) error {
				if _, err := stream.Recv(); err != io.EOF {
					return err
				}
				w.wantHeld()
				return stream.SendAndClose(&text{})
			}}
		}
		if err := runStream(t.Context(), serve(t, s(), onServer(w.fixed, interceptors.WithFirstMessage())...), "upload", 0); err != nil {
			t.Error(err)
		}
		byField := interceptors.ByField(w.client, "value", "orders/%s")
		err := runStream(t.Context(), serve(t, s(), onServer(byField, interceptors.WithFirstMessage())...), "upload", 0)
		wantStatus(t, err, codes.InvalidArgument, interceptors.ReasonName)
	})
}

// TestFirstMessageMayComeInAnotherGoroutine is a test for the race detector: the handler
// sends while another goroutine receives and so acquires the lock.
func TestFirstMessageMayComeInAnotherGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			received := make(chan error, 1)
			child, cancel := context.WithCancel(stream.Context())
			defer cancel()
			go func() { received <- drain[text](stream) }()
			for range 50 {
				if err := stream.Send(&text{}); err != nil {
					return err
				}
			}
			if err := <-received; err != nil {
				return err
			}
			for _, ctx := range []context.Context{stream.Context(), child} {
				if l, ok := zklock.FromContext(ctx); !ok || l.Name() != "orders/42" {
					t.Errorf("the context carries %v, want orders/42", l)
				}
			}
			return nil
		}}, onServer(w.fixed, interceptors.WithFirstMessage())...)
		if err := runStream(t.Context(), conn, "chat", 20); err != nil {
			t.Error(err)
		}
	})
}

// TestContextsMadeBeforeTheFirstMessageEndWithTheLock: a handler may derive contexts
// before the lock is acquired.
func TestContextsMadeBeforeTheFirstMessageEndWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			child, cancel := context.WithTimeout(stream.Context(), time.Hour)
			defer cancel()
			if _, ok := zklock.FromContext(child); ok {
				t.Error("the context carries a lock before the first message")
			}
			if _, err := stream.Recv(); err != nil {
				return err
			}
			if l, ok := zklock.FromContext(child); !ok || l.Name() != "orders/42" {
				t.Errorf("the context carries %v, want orders/42", l)
			}
			w.Lose(child)
			return nil
		}}, onServer(w.fixed, interceptors.WithFirstMessage())...)
		wantStatus(t, chat(t.Context(), conn), codes.FailedPrecondition, interceptors.ReasonLost)
	})
}

// torn is a codec that encodes one order wrongly.
type torn struct{}

func (torn) Name() string { return "proto" }
func (torn) Marshal(v any) ([]byte, error) {
	if o := v.(*text); o.GetValue() != "torn" {
		return proto.Marshal(o)
	}
	return []byte{0xff}, nil
}
func (torn) Unmarshal(b []byte, v any) error { return proto.Unmarshal(b, v.(*text)) }

// TestNothingFollowsAFirstMessageThatCannotBeRead: a handler ignores the error of its first Recv.
// The second one must not return a message, since nothing has picked its lock.
func TestNothingFollowsAFirstMessageThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		sent, returned := make(chan struct{}), make(chan struct{})
		conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			defer close(returned)
			<-sent
			_, first := stream.Recv()
			o, second := stream.Recv()
			if first == nil || second != first {
				t.Errorf("Recv: %v, and then %v, %v; want the same error twice", first, o, second)
			}
			return nil // gRPC has ended the call before
		}}, append(onServer(w.fixed, interceptors.WithFirstMessage()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(torn{})))...)
		stream, err := newShop(conn).Chat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"torn", "42"} {
			if err := stream.Send(&text{Value: id}); err != nil {
				t.Fatal(err)
			}
		}
		close(sent)
		if err := drain[text](stream); status.Code(err) != codes.Internal {
			t.Errorf("the call ended with %v, want Internal", err)
		}
		<-returned
		if n := len(w.Locks()); n != 0 {
			t.Errorf("%d locks were acquired, want none", n)
		}
	})
}
