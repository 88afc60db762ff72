package interceptors_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/interceptors/internal/shoppb"
	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is an ensemble with a client. The client's hooks check that every lock is
// released exactly once, and never while its handler runs.
type world struct {
	t        *testing.T
	ensemble *memdriver.Ensemble
	client   *zklock.Client

	mu       sync.Mutex
	released map[*zklock.Lock]int // guarded by mu; 0: held
	running  map[*zklock.Lock]int // guarded by mu; running handlers
	waiting  chan struct{}        // gets one value for every wait
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := memdriver.New()
	return newWorldOn(t, e, e.Connector())
}

func newWorldOn(t *testing.T, e *memdriver.Ensemble, connector driver.Connector) *world {
	t.Helper()
	w := &world{t: t, ensemble: e, released: make(map[*zklock.Lock]int), running: make(map[*zklock.Lock]int), waiting: make(chan struct{}, 1000)}
	client, err := zklock.OpenConnector(connector, zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if r.Lock != nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.released[r.Lock] += 0
				}
			}
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			w.waiting <- struct{}{}
			return ctx, nil
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			if ctx.Err() != nil {
				t.Errorf("released on a context that has ended: %v", ctx.Err())
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.released[e.Lock]++
			if n := w.running[e.Lock]; n != 0 {
				t.Errorf("a lock was released while %d of its handlers were running", n)
			}
			return ctx, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	t.Cleanup(w.close)
	return w
}

// close checks that every lock was released.
func (w *world) close() {
	eventually(w.t, "the release of all locks", func() bool { return w.client.Stats().Held == 0 })
	if err := w.client.Close(); err != nil {
		w.t.Error(err)
	}
	_ = w.ensemble.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for l, n := range w.released {
		if n != 1 {
			w.t.Errorf("lock %q was released %d times, want once", l.Name(), n)
		}
	}
}

// locks returns how many locks were acquired so far.
func (w *world) locks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.released)
}

// watch records that a handler runs under the lock that ctx carries, for the hooks.
func (w *world) watch(ctx context.Context) (left func()) {
	l, ok := zklock.FromContext(ctx)
	if !ok {
		w.t.Error("the handler's context carries no lock")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[l]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running[l]--
	}
}

// fixed picks one mutex for all calls.
func (w *world) fixed(context.Context, interceptors.Call) zklock.Acquirer {
	return w.client.Mutex("orders/42")
}

// hold acquires the mutex that fixed picks, with another client.
func (w *world) hold() (release func()) {
	w.t.Helper()
	other, err := zklock.OpenConnector(w.ensemble.Connector())
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := other.Mutex("orders/42").Acquire(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := l.Release(context.Background()); err != nil {
			w.t.Error(err)
		}
		if err := other.Close(); err != nil {
			w.t.Error(err)
		}
	})
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

// wantFree waits until no lock is held.
func (w *world) wantFree() {
	w.t.Helper()
	eventually(w.t, "the release of the lock", func() bool { return w.client.Stats().Held == 0 })
}

// lose ends all sessions and waits until the lock that ctx carries is lost.
func (w *world) lose(ctx context.Context) {
	w.ensemble.ExpireAll()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, zklock.ErrLost) {
		w.t.Errorf("the context's cause is %v, want ErrLost", cause)
	}
}

// shop is a service whose methods are functions. Methods without one must not be called.
type shop struct {
	shoppb.UnimplementedShopServer
	t      *testing.T
	pay    func(context.Context, *shoppb.Order) (*shoppb.Reply, error)
	upload func(grpc.ClientStreamingServer[shoppb.Order, shoppb.Reply]) error
	watch  func(*shoppb.Order, grpc.ServerStreamingServer[shoppb.Reply]) error
	chat   func(grpc.BidiStreamingServer[shoppb.Order, shoppb.Reply]) error
}

var errRan = status.Error(codes.Unimplemented, "the handler ran")

func (s *shop) Pay(ctx context.Context, o *shoppb.Order) (*shoppb.Reply, error) {
	if s.pay == nil {
		s.t.Error("the handler ran")
		return nil, errRan
	}
	return s.pay(ctx, o)
}

func (s *shop) Upload(stream grpc.ClientStreamingServer[shoppb.Order, shoppb.Reply]) error {
	if s.upload == nil {
		s.t.Error("the handler ran")
		return errRan
	}
	return s.upload(stream)
}

func (s *shop) Watch(o *shoppb.Order, stream grpc.ServerStreamingServer[shoppb.Reply]) error {
	if s.watch == nil {
		s.t.Error("the handler ran")
		return errRan
	}
	return s.watch(o, stream)
}

func (s *shop) Chat(stream grpc.BidiStreamingServer[shoppb.Order, shoppb.Reply]) error {
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
	shoppb.RegisterShopServer(server, s)
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
	return i(ctx, &shoppb.Order{Id: "42"}, &grpc.UnaryServerInfo{FullMethod: shoppb.Shop_Pay_FullMethodName}, h)
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

var eventually = wait.Until

// wantSilence checks that an error's status contains no names of locks or servers.
func wantSilence(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"orders", "42", "127.0.0.1", "session", "lock-", "held by", "behind"} {
		if strings.Contains(status.Convert(err).Message(), secret) {
			t.Errorf("the status contains %q: %v", secret, err)
		}
	}
}
