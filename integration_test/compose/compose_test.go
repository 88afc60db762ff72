package compose_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	grpcmiddleware "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// service is a gRPC service. Its methods call the functions that the test has set.
type service struct {
	orderspb.UnimplementedOrdersServer
	pay  func(context.Context) error
	fill func(context.Context) error
}

func (s *service) Pay(ctx context.Context, _ *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return &orderspb.Receipt{}, s.pay(ctx)
}

func (s *service) Fill(stream orderspb.Orders_FillServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := s.fill(stream.Context()); err != nil {
		return err
	}
	return stream.SendAndClose(&orderspb.Receipt{})
}

// open opens a zklock client. At the end of the test it must not hold any lock.
func open(t *testing.T, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	c, err := zklock.Open("mem://", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := c.Stats().Held; n != 0 {
			t.Errorf("%d locks are still held", n)
		}
		c.Close()
	})
	return c
}

// serve runs the service until the test is over, and returns a client of it.
func serve(t *testing.T, s *service, server []grpc.ServerOption, client ...grpc.DialOption) orderspb.OrdersClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer(server...)
	orderspb.RegisterOrdersServer(g, s)
	go g.Serve(listener)
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("passthrough:///orders", append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return orderspb.NewOrdersClient(conn)
}

// both calls both methods, and returns the error of each.
func both(ctx context.Context, client orderspb.OrdersClient) (pay, fill error) {
	_, pay = client.Pay(ctx, &orderspb.PayRequest{OrderId: "42"})
	stream, fill := client.Fill(ctx)
	if fill == nil {
		_ = stream.Send(&orderspb.Item{OrderId: "42"}) // CloseAndRecv returns the error
		_, fill = stream.CloseAndRecv()
	}
	return pay, fill
}

// TestSelectorChoosesWhatIsLocked: the interceptor locks the method that the selector
// matches, and not the other one.
func TestSelectorChoosesWhatIsLocked(t *testing.T) {
	pick := interceptors.FromProto(open(t))
	only := func(method string) selector.Matcher {
		return selector.MatchFunc(func(_ context.Context, m grpcmiddleware.CallMeta) bool { return m.FullMethod() == method })
	}
	for _, method := range []string{orderspb.Orders_Pay_FullMethodName, orderspb.Orders_Fill_FullMethodName} {
		t.Run(method, func(t *testing.T) {
			want := func(m string) func(context.Context) error {
				return func(ctx context.Context) error {
					if _, locked := zklock.FromContext(ctx); locked != (m == method) {
						t.Errorf("%s: locked is %v, want %v", m, locked, m == method)
					}
					return nil
				}
			}
			client := serve(t, &service{pay: want(orderspb.Orders_Pay_FullMethodName), fill: want(orderspb.Orders_Fill_FullMethodName)}, []grpc.ServerOption{
				grpc.UnaryInterceptor(selector.UnaryServerInterceptor(interceptors.UnaryServerInterceptor(pick), only(method))),
				grpc.StreamInterceptor(selector.StreamServerInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage()), only(method))),
			})
			if pay, fill := both(t.Context(), client); pay != nil || fill != nil {
				t.Errorf("Pay: %v, Fill: %v", pay, fill)
			}
		})
	}
}

// TestRecoverySeesPanicsWhenTheLockHasGoneBack: with recovery as the outer interceptor, as
// recommended, the lock is released before recovery handles the panic.
func TestRecoverySeesPanicsWhenTheLockHasGoneBack(t *testing.T) {
	c := open(t)
	pick := interceptors.FromProto(c)
	seen := 0
	recovered := recovery.WithRecoveryHandlerContext(func(_ context.Context, v any) error {
		seen++
		if held := c.Stats().Held; held != 0 {
			t.Errorf("%d locks are held when recovery handles the panic, want 0", held)
		}
		return status.Errorf(codes.DataLoss, "recovered %v", v)
	})
	boom := func(ctx context.Context) error {
		if _, ok := zklock.FromContext(ctx); !ok {
			t.Error("the method runs without the lock")
		}
		panic("boom")
	}
	client := serve(t, &service{pay: boom, fill: boom}, []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(recovery.UnaryServerInterceptor(recovered), interceptors.UnaryServerInterceptor(pick)),
		grpc.ChainStreamInterceptor(recovery.StreamServerInterceptor(recovered), interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())),
	})
	pay, fill := both(t.Context(), client)
	for _, err := range []error{pay, fill} {
		if status.Code(err) != codes.DataLoss {
			t.Errorf("the client got %v, want the code %v", err, codes.DataLoss)
		}
	}
	if seen != 2 {
		t.Errorf("%d panics were recovered, want 2", seen)
	}
}

// TestRetryInsideKeepsTheLock: with retry as the inner interceptor, the client holds the
// lock during all attempts of a call. It does not release it after the first attempt.
func TestRetryInsideKeepsTheLock(t *testing.T) {
	c := open(t)
	pick := func(context.Context, interceptors.Call) zklock.Acquirer { return c.Mutex("orders/42") }
	attempts := 0
	again := func(context.Context) error {
		if held := c.Stats().Held; held != 1 {
			t.Errorf("attempt %d: %d locks are held, want 1", attempts, held)
		}
		if attempts++; attempts%3 != 0 {
			return status.Error(codes.Unavailable, "again")
		}
		return nil
	}
	opts := []retry.CallOption{retry.WithMax(5)}
	client := serve(t, &service{pay: again}, nil,
		grpc.WithChainUnaryInterceptor(interceptors.UnaryClientInterceptor(pick), retry.UnaryClientInterceptor(opts...)))
	if _, err := client.Pay(t.Context(), &orderspb.PayRequest{}); err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v, want 3 attempts without an error", attempts, err)
	}
}

// TestSpansOfOtelgrpcCompriseTheLock: the lock is acquired within the server span of
// otelgrpc's stats handler, and a refused call is in that span's status.
func TestSpansOfOtelgrpcCompriseTheLock(t *testing.T) {
	var within []trace.SpanContext
	c := open(t, zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			within = append(within, trace.SpanContextFromContext(ctx))
			return ctx, nil
		},
	}))
	pick := interceptors.FromProto(c)
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	defer provider.Shutdown(context.Background())
	tracing := otelgrpc.WithTracerProvider(provider)
	fine := func(context.Context) error { return nil }
	client := serve(t, &service{pay: fine, fill: fine}, []grpc.ServerOption{
		grpc.StatsHandler(otelgrpc.NewServerHandler(tracing)),
		grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
		grpc.StreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())),
	}, grpc.WithStatsHandler(otelgrpc.NewClientHandler(tracing)))
	if pay, fill := both(t.Context(), client); pay != nil || fill != nil {
		t.Fatalf("Pay: %v, Fill: %v", pay, fill)
	}
	if _, err := client.Pay(t.Context(), &orderspb.PayRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a call without an order: %v, want the code %v", err, codes.InvalidArgument)
	}
	servers := make(map[trace.SpanID]bool)
	refused := 0
	for _, s := range serverSpans(t, spans, 3) {
		servers[s.SpanContext().SpanID()] = true
		for _, a := range s.Attributes() {
			if strings.HasPrefix(string(a.Key), "rpc.") && strings.HasSuffix(string(a.Key), "status_code") && strings.EqualFold(strings.ReplaceAll(a.Value.String(), "_", ""), "InvalidArgument") {
				refused++
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d server spans have the status of a refused call, want 1", refused)
	}
	if len(within) != 2 {
		t.Errorf("%d acquisitions, want 2", len(within))
	}
	for _, span := range within {
		if !servers[span.SpanID()] {
			t.Errorf("a lock was acquired within span %v, which is not a server span", span.SpanID())
		}
	}
}

// serverSpans waits for n server spans to end. A server span may end after the client has
// received the reply.
func serverSpans(t *testing.T, spans *tracetest.SpanRecorder, n int) []sdktrace.ReadOnlySpan {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		var found []sdktrace.ReadOnlySpan
		for _, s := range spans.Ended() {
			if s.SpanKind() == trace.SpanKindServer {
				found = append(found, s)
			}
		}
		if len(found) == n {
			return found
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%d server spans have ended, want %d", len(found), n)
		}
	}
}
