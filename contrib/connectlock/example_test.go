package connectlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// A call that finds the lock taken is refused at once, with the application's own code. With
// generated code, the interceptor goes into shopv1connect.NewShopHandler.
func ExampleHandlerInterceptor() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := connectlock.ByProcedure(map[string]connectlock.Pick{
		"/shop.v1.Shop/*": connectlock.ByField(client, "value", "orders/%s"),
	})
	lock := connectlock.HandlerInterceptor(pick,
		connectlock.WithWait(0), // refuse a call whose lock is taken at once
		connectlock.WithCode(connect.CodeResourceExhausted),
		connectlock.WithLostCode(connect.CodeDataLoss), // of a lock that was lost while the handler ran
		connectlock.WithRetryDelay(time.Second),
		connectlock.WithWriteTimeout(10*time.Second),
		connectlock.WithMaxHold(time.Minute),
		connectlock.WithFirstMessage(), // for streams
		connectlock.WithAcquire(
			zklock.WithAsyncRelease(), // a call does not wait until its release is confirmed
			zklock.WithMaxWaiters(20), // more are refused at once
			zklock.WithoutHandover(),  // each call has a token with a Zxid of its own
			zklock.Reenter(),          // the caller may hold the lock already
		),
		connectlock.WithLogger(slog.Default()), // for errors of the program
		connectlock.WithCallerLocks(func(_ context.Context, call connectlock.Call) bool { // does not wait for its caller's locks
			return call.Header.Get("X-Service") != "" // in production: what an authentication has put into the context
		}),
		connectlock.WithLabel(func(_ context.Context, call connectlock.Call) string { return call.Procedure }))
	handler := connect.NewUnaryHandler("/shop.v1.Shop/Pay", func(ctx context.Context, _ *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		held, _ := zklock.FromContext(ctx) // ctx ends if the lock is lost
		return connect.NewResponse(wrapperspb.String("paid under " + held.Name())), nil
	}, connect.WithInterceptors(lock))
	server := httptest.NewServer(connectlock.Handler(handler)) // WithMaxHold ends a Send that waits for a client
	defer server.Close()

	ctx := context.Background()
	other, err := client.Mutex("orders/43").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	defer other.Release(ctx)
	shop := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, server.URL+"/shop.v1.Shop/Pay")
	for _, id := range []string{"42", "43", ""} {
		reply, err := shop.CallUnary(ctx, connect.NewRequest(wrapperspb.String(id)))
		if err != nil {
			fmt.Println(connect.CodeOf(err), connectlock.Reason(err))
			continue
		}
		fmt.Println(reply.Msg.GetValue())
	}
	// Output:
	// paid under orders/42
	// resource_exhausted LOCK_CONTENDED
	// invalid_argument LOCK_NAME
}

// A client that holds a lock during its calls, because the server does not lock.
func ExampleClientInterceptor() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()
	server := httptest.NewServer(connect.NewUnaryHandler("/shop.v1.Shop/Pay", func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(r.Msg), nil
	}))
	defer server.Close()

	pick := connectlock.Optional(connectlock.ByHeader(client, "Tenant", "tenants/%s"))
	shop := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, server.URL+"/shop.v1.Shop/Pay",
		connect.WithInterceptors(connectlock.ClientInterceptor(pick)))
	request := connect.NewRequest(wrapperspb.String("42"))
	request.Header().Set("Tenant", "acme")
	reply, err := shop.CallUnary(context.Background(), request)
	if err != nil {
		panic(err)
	}
	fmt.Println("paid", reply.Msg.GetValue())
	// Output: paid 42
}

// The service's .proto file declares what its methods lock. The program checks that when it
// starts. A call that its own pick cannot name is refused.
func ExampleFromProto() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()

	fmt.Println(connectlock.CheckProto("zklock.test.connect.v1.Shop")) // the constant shopv1connect.ShopName
	pick := connectlock.ByProcedure(map[string]connectlock.Pick{
		"/zklock.test.connect.v1.Shop/*":   connectlock.FromProto(client),
		"/zklock.test.connect.v1.Shop/Pay": func(context.Context, connectlock.Call) zklock.Acquirer { return connectlock.Missing() },
	})
	pay := connect.NewUnaryHandler("/zklock.test.connect.v1.Shop/Pay", func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		panic("the call was not refused")
	}, connect.WithInterceptors(connectlock.HandlerInterceptor(pick, connectlock.WithWait(2*time.Second))))
	server := httptest.NewServer(pay)
	defer server.Close()
	_, err = connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, server.URL+"/zklock.test.connect.v1.Shop/Pay").
		CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("42")))
	fmt.Println(connectlock.Reason(err))
	// Output:
	// <nil>
	// LOCK_NAME
}

// Two fields of the request name the lock. A slash in a value is escaped, so that no call can have
// the lock of other values.
func ExampleByFields() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pick := connectlock.ByFields(client, "packages/%s/roots/%s", "name", "root")
	a := pick(context.Background(), connectlock.Call{Request: &apipb.Mixin{Name: "storage", Root: "v1/acls"}})
	fmt.Println(a.Name())
	// Output: packages/storage/roots/v1%2Facls
}
