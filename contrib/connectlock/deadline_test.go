package connectlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// overdue is a context whose deadline passes when the test says so.
type overdue struct {
	context.Context
	passed chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.passed }

func (o overdue) Err() error {
	select {
	case <-o.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// deadline is an interceptor that gives handlers of streams such a context.
type deadline struct {
	connect.Interceptor
	passed chan struct{}
}

func (d deadline) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (d deadline) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(overdue{ctx, d.passed}, conn)
	}
}

// post begins a call of upload over HTTP/1.1. The body of the request stays open.
func post(t *testing.T, address string, body io.Reader) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+upload, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Connect-Protocol-Version", "1")
	response := make(chan string, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			response <- err.Error()
			return
		}
		defer resp.Body.Close()
		all, _ := io.ReadAll(resp.Body)
		response <- string(all)
	}()
	return response
}

// message is one message of a body.
const message = "\x00\x00\x00\x00\x03\"x\""

// If the client keeps its request open, a handler's Receive that waits for a message ends at the
// call's deadline, and the lock is given back. A message that arrives after the loss is not
// delivered.
func TestStreamDeadline(t *testing.T) {
	for what, opts := range starts {
		for _, loses := range []bool{false, true} {
			t.Run(what+map[bool]string{true: " and loss"}[loses], func(t *testing.T) {
				c, e := zklocktest.New(t)
				body, request := io.Pipe()
				passed, returned := make(chan struct{}), make(chan struct{})
				address := listen(t, shop{upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
					defer close(returned)
					if !s.Receive() {
						t.Error(s.Err())
					}
					close(passed)
					<-ctx.Done()
					if s.Receive() || connect.CodeOf(s.Err()) != connect.CodeDeadlineExceeded {
						t.Errorf("Receive: %v, want deadline_exceeded", s.Err())
					}
					wantTaken(t, e)
					if loses {
						l, _ := zklock.FromContext(ctx)
						e.ExpireAll()
						<-l.Done()
						if _, err := io.WriteString(request, message); err != nil {
							t.Error(err)
						}
						if s.Receive() {
							t.Error("the handler got a message after the loss")
						}
					}
					return nil, s.Err()
				}}, chain{deadline{passed: passed}, connectlock.HandlerInterceptor(fixed(c), opts...)})
				response := post(t, address, body)
				if _, err := io.WriteString(request, message); err != nil {
					t.Fatal(err)
				}
				<-returned
				wantFree(t, e)
				if err := request.Close(); err != nil {
					t.Fatal(err)
				}
				<-response
			})
		}
	}
}

// pipe is a stream whose Receive ends when the test says so, and not with a context.
type pipe struct {
	connect.StreamingHandlerConn
	receive func() error
}

func (pipe) Spec() connect.Spec           { return connect.Spec{StreamType: connect.StreamTypeClient} }
func (pipe) RequestHeader() http.Header   { return make(http.Header) }
func (p pipe) Receive(any) error          { return p.receive() }
func (pipe) Peer() (unknown connect.Peer) { return unknown }

// handle serves a stream whose first message is there, and whose other messages receive returns.
func handle(ctx context.Context, pick connectlock.Pick, opts []connectlock.Option, receive func() error, handler connect.StreamingHandlerFunc) error {
	first := true
	conn := pipe{receive: func() error {
		if first {
			first = false
			return nil
		}
		return receive()
	}}
	return connectlock.HandlerInterceptor(pick, opts...).WrapStreamingHandler(func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := conn.Receive(wrapperspb.String("")); err != nil {
			return err
		}
		return handler(ctx, conn)
	})(ctx, conn)
}

// However a handler's context ends, its Receive ends with it, and gives no message afterwards.
func TestReceiveEndsWithTheContext(t *testing.T) {
	for end, code := range map[string]connect.Code{"deadline": connect.CodeDeadlineExceeded, "canceled": connect.CodeCanceled} {
		for what, opts := range starts {
			t.Run(end+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, e := zklocktest.New(t)
					var ctx context.Context
					var cancel context.CancelFunc
					if end == "deadline" {
						ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
					} else {
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(time.Minute, cancel)
					}
					defer cancel()
					late := make(chan struct{})
					began := time.Now()
					_ = handle(ctx, fixed(c), opts, func() error { <-late; return nil }, func(ctx context.Context, conn connect.StreamingHandlerConn) error {
						if err := conn.Receive(wrapperspb.String("")); connect.CodeOf(err) != code || time.Since(began) != time.Minute {
							t.Errorf("Receive returned %v after %v, want %v after a minute", err, time.Since(began), code)
						}
						e.ExpireAll()
						close(late)
						synctest.Wait()
						if again := conn.Receive(wrapperspb.String("")); again == nil {
							t.Error("the second Receive got a message after the loss")
						}
						return nil
					})
				})
			})
		}
	}
}

// A handler waits for a message. If its lock is lost before the message arrives, the message is not
// delivered.
func TestNoMessageAfterTheLoss(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			for range 20 { // Receive has a choice: the message, or the end of the context
				synctest.Test(t, func(t *testing.T) {
					c, e := zklocktest.New(t)
					var held *zklock.Lock
					_ = handle(t.Context(), fixed(c), opts, func() error { e.ExpireAll(); <-held.Done(); return nil }, func(ctx context.Context, conn connect.StreamingHandlerConn) error {
						held, _ = zklock.FromContext(ctx)
						if err := conn.Receive(wrapperspb.String("")); !errors.Is(err, zklock.ErrLost) {
							t.Errorf("Receive: %v, want the loss", err)
						}
						return nil
					})
				})
			}
		})
	}
}

// A handler that has released its lock goes on to receive.
func TestReceiveAfterRelease(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := zklocktest.New(t)
				err := handle(t.Context(), fixed(c), opts, func() error { time.Sleep(time.Minute); return nil }, func(ctx context.Context, conn connect.StreamingHandlerConn) error {
					held, _ := zklock.FromContext(ctx)
					if err := held.Release(t.Context()); err != nil {
						return err
					}
					return conn.Receive(wrapperspb.String(""))
				})
				if err != nil {
					t.Errorf("the call ended with %v", err)
				}
			})
		})
	}
}
