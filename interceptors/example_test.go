package interceptors_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/apipb"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// orders is a service that prints the name of the lock it holds.
type orders struct{ shopServer }

func (orders) Pay(ctx context.Context, _ *text) (*text, error) {
	if lock, ok := zklock.FromContext(ctx); ok {
		fmt.Println("paid under", lock.Name())
	} else {
		fmt.Println("paid without a lock")
	}
	return new(text), nil
}

func (orders) Upload(stream grpc.ClientStreamingServer[text, text]) error {
	if _, err := stream.Recv(); err != nil { // the first message, which names the lock
		return err
	}
	lock, _ := zklock.FromContext(stream.Context())
	fmt.Println("uploaded under", lock.Name())
	return stream.SendAndClose(new(text))
}

// connected runs the service until stop is called.
func connected(server []grpc.ServerOption, client ...grpc.DialOption) (shop shopClient, stop func()) {
	conn, stop := dialed(server, client...)
	return newShop(conn), stop
}

// dialed runs the service and its health checks until stop is called.
func dialed(server []grpc.ServerOption, client ...grpc.DialOption) (conn *grpc.ClientConn, stop func()) {
	s := grpc.NewServer(server...)
	s.RegisterService(&shopDesc, orders{})
	healthpb.RegisterHealthServer(s, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	conn, err = grpc.NewClient(l.Addr().String(), append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	return conn, func() { _ = conn.Close(); s.Stop(); <-ended }
}

// Only the requests of the program's own methods have the field. With ByMethod, calls of
// other services, such as health checks and reflection, need no lock.
func ExampleByField() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := interceptors.ByMethod(map[string]interceptors.Pick{
		"/zklock.test.shop.v1.Shop/*": interceptors.ByField(client, "value", "orders/%s"),
	})
	conn, stop := dialed([]grpc.ServerOption{
		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())),
	})
	defer stop()

	ctx := context.Background()
	_, _ = newShop(conn).Pay(ctx, &text{Value: "42"})
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, new(healthpb.HealthCheckRequest))
	fmt.Println(answer.GetStatus(), err)
	// Output:
	// paid under orders/42
	// SERVING <nil>
}

// Two fields of the request name the lock. A slash in a value is escaped, so that no call can have
// the lock of other values.
func ExampleByFields() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := interceptors.ByFields(client, "packages/%s/roots/%s", "name", "root")
	a := pick(context.Background(), interceptors.Call{Request: &apipb.Mixin{Name: "storage", Root: "v1/acls"}})
	fmt.Println(a.Name())
	// Output: packages/storage/roots/v1%2Facls
}

// A program checks its declarations when it starts.
func ExampleCheckProto() {
	server := grpc.NewServer()
	server.RegisterService(&shopDesc, orders{})
	fmt.Println(interceptors.CheckProto(server))
	// Output: <nil>
}

// The service's .proto file declares what its methods lock.
func ExampleFromProto() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := interceptors.FromProto(client)
	shop, stop := connected([]grpc.ServerOption{
		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())),
	})
	defer stop()

	ctx := context.Background()
	_, _ = shop.Pay(ctx, &text{Value: "42"})
	upload, err := shop.Upload(ctx)
	if err != nil {
		panic(err)
	}
	_ = upload.Send(&text{Value: "43"})
	_, err = upload.CloseAndRecv()
	fmt.Println(err)
	// Output:
	// paid under orders/42
	// uploaded under orders/43
	// <nil>
}

// A call that finds the lock taken is refused at once, with the application's own code.
func ExampleUnaryServerInterceptor() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	shop, stop := connected([]grpc.ServerOption{grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(
		interceptors.ByMethod(map[string]interceptors.Pick{methodPay: interceptors.ByField(client, "value", "orders/%s")}),
		interceptors.WithWait(0), // refuse a call whose lock is taken at once
		interceptors.WithCode(codes.ResourceExhausted),
		interceptors.WithLostCode(codes.DataLoss), // of a lock that was lost while the handler ran
		interceptors.WithRetryDelay(time.Second),
		interceptors.WithWriteTimeout(10*time.Second),
		interceptors.WithMaxHold(time.Minute),
		interceptors.WithAcquire(
			zklock.WithAsyncRelease(), // a call does not wait until its release is confirmed
			zklock.WithMaxWaiters(20), // more are refused at once
			zklock.WithoutHandover(),  // a token with a Zxid of its own
			zklock.Reenter(),          // the caller may hold the lock already
		),
		interceptors.WithLabel(func(_ context.Context, call interceptors.Call) string { return call.FullMethod }),
		interceptors.WithLogger(slog.Default()), // for errors of the program
		interceptors.WithCallerLocks(func(_ context.Context, call interceptors.Call) bool { // does not wait for its caller's locks
			return len(call.Metadata["x-service"]) > 0 // in production: by the certificate that package peer finds
		}),
	))})
	defer stop()

	ctx := context.Background()
	other, err := client.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	defer other.Release(ctx)
	for _, id := range []string{"42", ""} {
		_, err := shop.Pay(ctx, &text{Value: id})
		fmt.Printf("%s: %v %s\n", id, status.Code(err), interceptors.Reason(err))
	}
	// Output:
	// 42: ResourceExhausted LOCK_CONTENDED
	// : InvalidArgument LOCK_NAME
}

// Each method has its own pick. Methods without one need no lock.
func ExampleByMethod() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	byTenant := interceptors.ByMetadata(client, "tenant", "tenants/%s")
	pick := interceptors.ByMethod(map[string]interceptors.Pick{
		methodPay:  interceptors.Optional(byTenant),
		methodRead: interceptors.PassThrough,
		methodBake: func(_ context.Context, call interceptors.Call) zklock.Acquirer {
			if len(call.Metadata.Get("oven")) == 0 {
				return interceptors.Missing()
			}
			return client.Semaphore("ovens", 2)
		},
	})
	shop, stop := connected([]grpc.ServerOption{grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick, interceptors.WithWait(2*time.Second)))})
	defer stop()

	ctx := context.Background()
	_, _ = shop.Pay(ctx, new(text))
	_, _ = shop.Pay(metadata.AppendToOutgoingContext(ctx, "tenant", "acme"), new(text))
	_, err = shop.Bake(ctx, new(text))
	fmt.Println(status.Code(err))
	// Output:
	// paid without a lock
	// paid under tenants/acme
	// InvalidArgument
}

// A client that holds a lock during its calls and sends the lock's token with them. The
// server refuses calls on behalf of a lock that has a newer holder.
func ExampleUnaryClientInterceptor() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := interceptors.ByMethod(map[string]interceptors.Pick{methodPay: interceptors.ByField(client, "value", "orders/%s")})
	var guard fence.Guard
	trust := func(context.Context, interceptors.Call) (origin string, ok bool) { return "shop", true } // in production: by the client certificate
	shop, stop := connected(
		[]grpc.ServerOption{grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(interceptors.PassThrough, interceptors.WithSequencerCheck(&guard, trust)))},
		grpc.WithUnaryInterceptor(interceptors.UnaryClientInterceptor(pick, interceptors.WithSequencers())),
		grpc.WithStreamInterceptor(interceptors.StreamClientInterceptor(interceptors.PassThrough)))
	defer stop()

	_, err = shop.Pay(context.Background(), &text{Value: "42"})
	fmt.Println(err)
	// Output:
	// paid without a lock
	// <nil>
}
