package interceptors_test

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors"
)

// kinds are the kinds of calls, on servers and on clients. Each function makes a call that does not
// get its lock. Its result there is the error that the caller gets; its result here is the error in
// the process that locks. If the client locks, the two are the same.
var kinds = map[string]func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (there, here error){
	"unary on the server": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		here := make(chan error, 1)
		conn := serve(t, &shop{}, grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
				resp, err := h(ctx, req)
				here <- err
				return resp, err
			}, interceptors.UnaryServerInterceptor(pick, opts...)))
		_, err := newShop(conn).Pay(ctx, &text{})
		return err, <-here
	},
	"stream on the server": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		here := make(chan error, 1)
		conn := serve(t, &shop{}, grpc.ChainStreamInterceptor(record(here), interceptors.StreamServerInterceptor(pick, opts...)))
		return chat(ctx, conn), <-here
	},
	"first message on the server": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		here := make(chan error, 1)
		opts = append(opts, interceptors.WithFirstMessage())
		conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			if _, err := stream.Recv(); err == nil {
				t.Error("the handler got a message without a lock")
			}
			if _, err := stream.Recv(); err == nil {
				t.Error("the handler got another message without a lock")
			}
			return nil // as a handler that ignores the errors
		}}, grpc.ChainStreamInterceptor(record(here), interceptors.StreamServerInterceptor(pick, opts...)))
		return chat(ctx, conn), <-here
	},
	"unary on the client": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		_, err := newShop(serve(t, &shop{}, onClient(pick, opts...)...)).Pay(ctx, &text{})
		return err, err
	},
	"stream on the client": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		err := chat(ctx, serve(t, &shop{}, onClient(pick, opts...)...))
		return err, err
	},
	"first message on the client": func(t *testing.T, ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
		err := chat(ctx, serve(t, &shop{}, onClient(pick, append(opts, interceptors.WithFirstMessage())...)...))
		return err, err
	},
}

// record is an interceptor that sends the error of each stream to ends.
func record(ends chan<- error) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		err := h(srv, ss)
		ends <- err
		return err
	}
}

// chat sends one message, and receives until the stream ends.
func chat(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := newShop(conn).Chat(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&text{}) // Recv returns the error
	return drain[text](stream)
}

// everyKind runs a test in a synctest bubble for each kind of call.
func everyKind(t *testing.T, test func(t *testing.T, call func(ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (there, here error))) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func(ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (error, error) {
					return kind(t, ctx, pick, opts...)
				})
			})
		})
	}
}

type caller = func(ctx context.Context, pick interceptors.Pick, opts ...interceptors.Option) (there, here error)
