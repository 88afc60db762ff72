package interceptors_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// journal is a log that a test can read.
type journal struct {
	wrote chan struct{} // gets an element for each line

	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func newJournal() *journal { return &journal{wrote: make(chan struct{}, 100)} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer func() { j.wrote <- struct{}{} }()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// recoverStream is a recovery interceptor: it turns panics into a status.
func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Error(codes.DataLoss, fmt.Sprint("recovered ", v))
		}
	}()
	return handler(srv, ss)
}

// badReceiver is a stream whose RecvMsg calls a function that panics or ends the
// goroutine.
type badReceiver struct {
	grpc.ServerStream
	recv func()
}

func (s badReceiver) RecvMsg(any) error { s.recv(); return nil }

func TestPanicUnderRecvMsgReachesTheRecoveryInterceptor(t *testing.T) {
	w := newWorld(t)
	log := newJournal()
	spoil := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, badReceiver{ss, func() { panic("boom") }})
	}
	conn := serve(t, &shop{
		upload: func(stream grpc.ClientStreamingServer[text, text]) error {
			_, err := stream.Recv()
			t.Errorf("Recv returned %v", err)
			return err
		},
	}, grpc.ChainStreamInterceptor(recoverStream, spoil, interceptors.StreamServerInterceptor(w.fixed, interceptors.WithLogger(log.logger()))))
	stream, err := newShop(conn).Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "recovered boom") {
		t.Errorf("the client got %v, want the recovered panic", err)
	}
	// The panic was on another goroutine than the handler's, so the log must have its stack. The handler does not
	// wait for that.
	<-log.wrote
	if text := log.String(); !strings.Contains(text, "boom") || !strings.Contains(text, "badReceiver") {
		t.Errorf("logged %q, want the panic and its stack", text)
	}
	w.WantFree()
}

func TestGoexitUnderRecvMsgEndsTheHandlersGoroutine(t *testing.T) {
	w := newWorld(t)
	ended := make(chan struct{})
	intercept := interceptors.StreamServerInterceptor(w.fixed)
	go func() {
		defer close(ended)
		ss := badReceiver{silentStream{ctx: t.Context()}, runtime.Goexit}
		_ = intercept(nil, ss, &grpc.StreamServerInfo{FullMethod: "/a/b", IsClientStream: true}, func(_ any, ss grpc.ServerStream) error {
			err := ss.RecvMsg(nil)
			t.Errorf("RecvMsg returned %v", err)
			return err
		})
	}()
	<-ended
	w.WantFree()
}

// silentStream is a server's stream without a connection.
type silentStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s silentStream) Context() context.Context { return s.ctx }

func TestPanicOfAPickByFirstMessageReachesTheRecoveryInterceptor(t *testing.T) {
	conn := serve(t, &shop{
		upload: func(stream grpc.ClientStreamingServer[text, text]) error {
			_, err := stream.Recv()
			t.Errorf("Recv returned %v", err)
			return err
		},
	}, grpc.ChainStreamInterceptor(recoverStream, interceptors.StreamServerInterceptor(
		func(context.Context, interceptors.Call) zklock.Acquirer { panic("boom") }, interceptors.WithFirstMessage())))
	stream, err := newShop(conn).Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&text{Value: "42"}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); status.Code(err) != codes.DataLoss {
		t.Errorf("the client got %v, want DataLoss", err)
	}
}

// TestPanicWhileAStreamIsOpened: opening a client's stream panics on a goroutine that
// recovers, while another goroutine waits in RecvMsg.
func TestPanicWhileAStreamIsOpened(t *testing.T) {
	for name, opts := range map[string][]interceptors.Option{
		"before the lock": {interceptors.WithLabel(func(context.Context, interceptors.Call) string { panic("boom") })},
		"under the lock":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			intercept := interceptors.StreamClientInterceptor(w.fixed, append(opts, interceptors.WithFirstMessage())...)
			stream, err := intercept(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, nil, "/a/b",
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					panic("boom")
				})
			if err != nil {
				t.Fatal(err)
			}
			received := make(chan error, 1)
			go func() { received <- stream.RecvMsg(nil) }()
			func() {
				defer func() {
					if v := recover(); v != "boom" {
						t.Errorf("recovered %v, want boom", v)
					}
				}()
				_ = stream.SendMsg(&text{Value: "42"})
			}()
			if err := <-received; status.Code(err) != codes.Internal {
				t.Errorf("RecvMsg: %v, want Internal", err)
			}
			w.WantFree()
		})
	}
}
