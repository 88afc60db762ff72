package connectlock_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// The stream of a handler holds its lock from its beginning to its end. The header picks the lock.
func TestStreamHandlerHoldsTheLock(t *testing.T) {
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, e := zklocktest.New(t)
			pick := connectlock.ByHeader(c, "order", "orders/%s")
			s := serve(t, shop{
				upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
					n := 0
					for ; s.Receive(); n++ {
						wantTaken(t, e)
					}
					if n != 2 || s.Err() != nil {
						t.Errorf("received %d messages, %v, want 2", n, s.Err())
					}
					return wrapperspb.String(name(ctx)), nil
				},
				watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
					wantTaken(t, e)
					return s.Send(wrapperspb.String(name(ctx)))
				},
			}, connectlock.HandlerInterceptor(pick), opts...)

			up := s.upload.CallClientStream(t.Context())
			up.RequestHeader().Set("order", "42")
			for range 2 {
				if err := up.Send(wrapperspb.String("x")); err != nil {
					t.Fatal(err)
				}
			}
			got, err := up.CloseAndReceive()
			if err != nil || got.Msg.GetValue() != "orders/42" {
				t.Errorf("upload: %v, %v", got, err)
			}
			wantFree(t, e)

			req := connect.NewRequest(wrapperspb.String("x"))
			req.Header().Set("order", "42")
			down, err := s.watch.CallServerStream(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if !down.Receive() || down.Msg().GetValue() != "orders/42" || down.Receive() || down.Err() != nil {
				t.Errorf("watch: %v, %v", down.Msg(), down.Err())
			}
			_ = down.Close()
			wantFree(t, e)
		})
	}
}

// With WithFirstMessage the first message picks the lock; the context gets it then.
func TestStreamHandlerFirstMessage(t *testing.T) {
	c, e := zklocktest.New(t)
	s := serve(t, shop{
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			before := name(ctx)
			for s.Receive() {
				wantTaken(t, e)
			}
			return wrapperspb.String(before + ", " + name(ctx)), s.Err()
		},
		watch: func(ctx context.Context, m *text, s *connect.ServerStream[text]) error {
			return s.Send(wrapperspb.String(name(ctx)))
		},
	}, connectlock.HandlerInterceptor(connectlock.ByField(c, "value", "orders/%s"), connectlock.WithFirstMessage()))

	up := s.upload.CallClientStream(t.Context())
	if err := up.Send(wrapperspb.String("42")); err != nil {
		t.Fatal(err)
	}
	got, err := up.CloseAndReceive()
	if err != nil || got.Msg.GetValue() != "no lock, orders/42" {
		t.Errorf("upload: %v, %v", got, err)
	}
	wantFree(t, e)

	down, err := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("42")))
	if err != nil || !down.Receive() || down.Msg().GetValue() != "orders/42" {
		t.Errorf("watch: %v, %v", down, err)
	}
	_ = down.Close()

	_, err = s.upload.CallClientStream(t.Context()).CloseAndReceive()
	wantError(t, err, connect.CodeInvalidArgument, "LOCK_NAME") // no message names a lock

	defer elsewhere(t, e)()
	try := serve(t, shop{
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			if s.Receive() {
				t.Error("the handler has received a message without its lock")
			}
			return wrapperspb.String("the handler's"), nil
		},
	}, connectlock.HandlerInterceptor(connectlock.ByField(c, "value", "orders/%s"), connectlock.WithFirstMessage(), connectlock.WithWait(0)))
	up = try.upload.CallClientStream(t.Context())
	_ = up.Send(wrapperspb.String("42"))
	_, err = up.CloseAndReceive()
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
}

// A field cannot name the lock of a stream without WithFirstMessage: an error of the program.
func TestStreamHandlerTooEarly(t *testing.T) {
	c, _ := zklocktest.New(t)
	s := serve(t, shop{}, connectlock.HandlerInterceptor(connectlock.ByField(c, "value", "orders/%s"), quiet()))
	up := s.upload.CallClientStream(t.Context())
	_ = up.Send(wrapperspb.String("42"))
	_, err := up.CloseAndReceive()
	wantError(t, err, connect.CodeInternal, "LOCK_ERROR")
}

// When the lock is lost, a Receive that waits for the client ends, and the stream is stopped.
func TestStreamHandlerLost(t *testing.T) {
	for what, opts := range map[string][]connectlock.Option{"at once": nil, "first message": {connectlock.WithFirstMessage()}} {
		for protocol, client := range protocols {
			t.Run(what+"/"+protocol, func(t *testing.T) {
				c, e := zklocktest.New(t)
				s := serve(t, shop{chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
					if _, err := s.Receive(); err != nil {
						return err
					}
					if err := s.Send(wrapperspb.String(name(ctx))); err != nil {
						return err
					}
					go e.ExpireAll()
					_, err := s.Receive() // the client sends nothing more
					if !errors.Is(err, zklock.ErrLost) {
						t.Errorf("Receive: %v, want the loss", err)
					}
					if _, again := s.Receive(); !errors.Is(again, zklock.ErrLost) {
						t.Errorf("Receive once more: %v, want the loss", again)
					}
					if sent := s.Send(wrapperspb.String("late")); !errors.Is(sent, zklock.ErrLost) {
						t.Errorf("Send: %v, want the loss", sent)
					}
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
						t.Errorf("the context ended with %v, want the loss", context.Cause(ctx))
					}
					return nil
				}}, connectlock.HandlerInterceptor(fixed(c), opts...), client...)
				stream := s.chat.CallBidiStream(t.Context())
				if err := stream.Send(wrapperspb.String("x")); err != nil {
					t.Fatal(err)
				}
				if m, err := stream.Receive(); err != nil || m.GetValue() != "orders/42" {
					t.Fatalf("received %v, %v", m, err)
				}
				_, err := stream.Receive()
				wantError(t, err, connect.CodeFailedPrecondition, "LOCK_LOST")
				_ = stream.CloseRequest()
				_ = stream.CloseResponse()
			})
		}
	}
}

// A client's stream acquires its lock with the first message, and gives it back at its end.
func TestStreamClient(t *testing.T) {
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, e := zklocktest.New(t)
			lock := connectlock.ClientInterceptor(connectlock.ByField(c, "value", "orders/%s"), connectlock.WithWait(0))
			s := serve(t, shop{
				upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
					for s.Receive() {
						wantTaken(t, e)
					}
					return wrapperspb.String("uploaded"), s.Err()
				},
				watch: func(ctx context.Context, m *text, s *connect.ServerStream[text]) error {
					wantTaken(t, e)
					return errors.Join(s.Send(m), s.Send(m))
				},
				chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
					for {
						m, err := s.Receive()
						if errors.Is(err, io.EOF) {
							return nil
						}
						if err == nil {
							wantTaken(t, e)
							err = s.Send(m)
						}
						if err != nil {
							return err
						}
					}
				},
			}, nil, append(opts, connect.WithInterceptors(lock))...)

			up := s.upload.CallClientStream(t.Context())
			wantFree(t, e)
			if err := up.Send(wrapperspb.String("42")); err != nil {
				t.Fatal(err)
			}
			wantTaken(t, e)
			if got, err := up.CloseAndReceive(); err != nil || got.Msg.GetValue() != "uploaded" {
				t.Errorf("upload: %v, %v", got, err)
			}
			wantFree(t, e)

			down, err := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("42")))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for ; down.Receive(); n++ {
			}
			if n != 2 || down.Err() != nil {
				t.Errorf("watch: %d messages, %v, want 2", n, down.Err())
			}
			wantFree(t, e) // at the end of the messages, before Close
			_ = down.Close()

			talk := s.chat.CallBidiStream(t.Context())
			for range 3 {
				if err := talk.Send(wrapperspb.String("42")); err != nil {
					t.Fatal(err)
				}
				if m, err := talk.Receive(); err != nil || m.GetValue() != "42" {
					t.Fatalf("chat: %v, %v", m, err)
				}
				wantTaken(t, e)
			}
			_ = talk.CloseRequest()
			if _, err := talk.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("chat: %v, want io.EOF", err)
			}
			wantFree(t, e)
			_ = talk.CloseResponse()
		})
	}
}

// A client's stream that did not get its lock sends nothing, and none of its methods waits for a
// response: none would ever arrive.
func TestStreamClientContended(t *testing.T) {
	c, e := zklocktest.New(t)
	defer elsewhere(t, e)()
	s := serve(t, shop{}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c), connectlock.WithWait(0))))

	up := s.upload.CallClientStream(t.Context())
	wantError(t, up.Send(wrapperspb.String("x")), connect.CodeAborted, "LOCK_CONTENDED")
	_, err := up.CloseAndReceive()
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")

	_, err = s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")

	talk := s.chat.CallBidiStream(t.Context())
	wantError(t, talk.Send(wrapperspb.String("x")), connect.CodeAborted, "LOCK_CONTENDED")
	_, err = talk.Receive()
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
	if h := talk.ResponseHeader(); len(h) != 0 {
		t.Errorf("a stream that was not begun has the response header %v", h)
	}
	wantError(t, talk.CloseRequest(), connect.CodeAborted, "LOCK_CONTENDED")
	if err := talk.CloseResponse(); err != nil {
		t.Error(err)
	}

	unsent := s.chat.CallBidiStream(t.Context())
	if err := unsent.CloseResponse(); err != nil {
		t.Error(err)
	}
	if err := unsent.Send(wrapperspb.String("x")); connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("Send on a stream that was closed: %v, want canceled", err)
	}
}

// The loss ends a client's stream, and a stream that is abandoned ends with its context.
func TestStreamClientLostAndAbandoned(t *testing.T) {
	c, e := zklocktest.New(t)
	s := serve(t, shop{chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
		m, err := s.Receive()
		if err == nil {
			err = s.Send(m)
		}
		if err == nil {
			<-ctx.Done()
			err = ctx.Err()
		}
		return err
	}}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c))))
	open := func(ctx context.Context) *connect.BidiStreamForClient[text, text] {
		talk := s.chat.CallBidiStream(ctx)
		if err := talk.Send(wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := talk.Receive(); err != nil {
			t.Fatal(err)
		}
		return talk
	}
	lost := open(t.Context())
	go e.ExpireAll()
	_, err := lost.Receive()
	wantError(t, err, connect.CodeFailedPrecondition, "LOCK_LOST")
	if !errors.Is(err, zklock.ErrLost) {
		t.Errorf("error %v, want one that matches ErrLost", err)
	}
	_ = lost.CloseRequest()
	_ = lost.CloseResponse()

	ctx, cancel := context.WithCancel(t.Context())
	abandoned := open(ctx)
	wantTaken(t, e)
	cancel()
	wantFree(t, e)
	_ = abandoned.CloseRequest() // for the server, which net/http does not notify of the cancellation before that
}
