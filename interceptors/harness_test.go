package interceptors_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/internal/testkit/leaks"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is a World with the names that these tests use.
type world struct {
	*testworld.World
	t        *testing.T
	ensemble *memdriver.Ensemble
	client   *zklock.Client
	waiting  chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := memdriver.New()
	return newWorldOn(t, e, e.Connector())
}

func newWorldOn(t *testing.T, e *memdriver.Ensemble, connector driver.Connector) *world {
	t.Helper()
	w := testworld.New(t, e, connector)
	return &world{w, t, e, w.Client, w.Waiting}
}

// fixed picks one mutex for all calls.
func (w *world) fixed(context.Context, interceptors.Call) zklock.Acquirer {
	return w.client.Mutex("orders/42")
}

// wantHeld checks that the mutex which fixed picks is held.
func (w *world) wantHeld() {
	w.t.Helper()
	l, err := w.client.Mutex("orders/42").TryAcquire(context.Background())
	if !errors.Is(err, zklock.ErrNotAcquired) {
		w.t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
	}
	if err == nil {
		_ = l.Release(context.Background())
	}
}

// shop is a service whose methods are functions. Methods without one must not be called.
type shop struct {
	t      *testing.T
	pay    func(context.Context, *text) (*text, error)
	upload func(grpc.ClientStreamingServer[text, text]) error
	watch  func(*text, grpc.ServerStreamingServer[text]) error
	chat   func(grpc.BidiStreamingServer[text, text]) error
}

var errRan = status.Error(codes.Unimplemented, "the handler ran")

func (s *shop) Pay(ctx context.Context, o *text) (*text, error) {
	if s.pay == nil {
		s.t.Error("the handler ran")
		return nil, errRan
	}
	return s.pay(ctx, o)
}

func (s *shop) Upload(stream grpc.ClientStreamingServer[text, text]) error {
	if s.upload == nil {
		s.t.Error("the handler ran")
		return errRan
	}
	return s.upload(stream)
}

func (s *shop) Watch(o *text, stream grpc.ServerStreamingServer[text]) error {
	if s.watch == nil {
		s.t.Error("the handler ran")
		return errRan
	}
	return s.watch(o, stream)
}

func (s *shop) Chat(stream grpc.BidiStreamingServer[text, text]) error {
	if s.chat == nil {
		s.t.Error("the handler ran")
		return errRan
	}
	return s.chat(stream)
}

// serve runs the service until the test ends, and returns a connection to it. The server
// options among opts go to the server, the dial options to the client.
func serve(t *testing.T, s *shop, opts ...any) *grpc.ClientConn {
	t.Helper()
	s.t = t
	dial := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	var serverOpts []grpc.ServerOption
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.ServerOption:
			serverOpts = append(serverOpts, o)
		case grpc.DialOption:
			dial = append(dial, o)
		default:
			t.Fatalf("%T is neither a server option nor a dial option", o)
		}
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(serverOpts...)
	server.RegisterService(&shopDesc, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	dial = append(dial, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///shop", dial...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // some tests have closed it
		server.Stop()
		// A test without a call may end before Serve has begun.
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return conn
}

// onServer returns the options with a server's interceptors.
func onServer(pick interceptors.Pick, opts ...interceptors.Option) []any {
	return []any{
		grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick, opts...)),
		grpc.StreamInterceptor(interceptors.StreamServerInterceptor(pick, opts...)),
	}
}

// onClient returns the options with a client's interceptors.
func onClient(pick interceptors.Pick, opts ...interceptors.Option) []any {
	return []any{
		grpc.WithUnaryInterceptor(interceptors.UnaryClientInterceptor(pick, opts...)),
		grpc.WithStreamInterceptor(interceptors.StreamClientInterceptor(pick, opts...)),
	}
}

// wantStatus checks an error that an interceptor made, as the caller receives it.
func wantStatus(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("%v: code %v, want %v", err, got, code)
	}
	if got := interceptors.Reason(err); got != reason {
		t.Errorf("%v: reason %q, want %q", err, got, reason)
	}
	wantSilence(t, err)
}

// retryDelay returns the delay in an error's RetryInfo; 0 without one.
func retryDelay(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// callUnary makes a unary call of a server's interceptor without a network.
func callUnary(ctx context.Context, i grpc.UnaryServerInterceptor, h grpc.UnaryHandler) (any, error) {
	return i(ctx, &text{Value: "42"}, &grpc.UnaryServerInfo{FullMethod: methodPay}, h)
}

// drain receives until the stream ends. It returns the error that ended it, nil for
// io.EOF.
func drain[T any](stream interface{ Recv() (*T, error) }) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// wantSilence checks that an error's status contains no names of locks or servers.
func wantSilence(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"orders", "42", "127.0.0.1", "session", "lock-", "held by", "behind"} {
		if strings.Contains(status.Convert(err).Message(), secret) {
			t.Errorf("the status contains %q: %v", secret, err)
		}
	}
}
