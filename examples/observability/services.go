package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// usual is how long work on an order takes by default.
const usual = 5 * time.Millisecond

// work simulates the work on a locked order. It ends early when the request's context ends,
// because the client has disconnected or the lock was lost.
func work(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// asked returns how long the work of a request takes: the parameter for, or usually d.
func asked(r *http.Request, d time.Duration) time.Duration {
	if asked, err := time.ParseDuration(r.URL.Query().Get("for")); err == nil {
		return asked
	}
	return d
}

// exported is the route of the export of an order.
const exported = "POST /orders/{id}/export"

// moved is the route of a move from one order to another.
const moved = "POST /orders/{id}/move/{to}"

// httpService returns the handler that pays, exports and moves orders. otelhttp is the outermost layer: its
// span is that of the request, and the spans of the lock are below it.
func httpService(client *zklock.Client, t *telemetry) http.Handler {
	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"), middleware.WithWait(5*time.Second))
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := work(r.Context(), asked(r, usual)); err != nil {
			http.Error(w, "stopped early", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "order %s paid\n", r.PathValue("id"))
	})
	// The export does not watch its context, as code does that calls a library without one: if its
	// lock is lost or revoked, it goes on.
	export := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = work(context.WithoutCancel(r.Context()), asked(r, time.Second))
	})
	// The move acquires two orders, in the order in which the request names them. That is a mistake: moves in
	// opposite directions run into a deadlock, and one of them fails.
	to := middleware.ByPathValue(client, "to", "orders/%s")
	move := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := work(r.Context(), asked(r, usual))
		if err == nil {
			err = zklock.Do(r.Context(), to(r), func(ctx context.Context, _ *zklock.Lock) error { return work(ctx, usual) }, zklock.WithLabel(moved))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	revocable := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"), middleware.WithAcquire(zklock.WithRevocable()))
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", lock(pay))
	mux.Handle(exported, revocable(export))
	mux.Handle(moved, lock(move))
	return otelhttp.NewHandler(mux, "http", otelhttp.WithTracerProvider(t.traces), otelhttp.WithMeterProvider(t.meters), otelhttp.WithPropagators(t.propagator),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			_, route := mux.Handler(r)
			return route
		}))
}

// httpServer is a server that lets requests end, for up to 10 s, when it stops.
type httpServer struct{ *http.Server }

func (s httpServer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return s.Shutdown(ctx)
}

// grpcService returns the server that pays and shows orders. The .proto declares the locks
// of its methods.
func grpcService(client *zklock.Client, t *telemetry, name string) *grpc.Server {
	declared := interceptors.FromProto(client)
	s := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(t.traces), otelgrpc.WithMeterProvider(t.meters), otelgrpc.WithPropagators(t.propagator))),
		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(declared)))
	orderspb.RegisterOrdersServer(s, orders{name: name})
	return s
}

// orders is the gRPC service.
type orders struct {
	orderspb.UnimplementedOrdersServer
	name string
}

// Pay charges an order.
func (o orders) Pay(ctx context.Context, _ *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return &orderspb.Receipt{Server: o.name}, work(ctx, usual)
}

// TryPay does the same as Pay. What differs is the wait for the lock, which the .proto
// declares.
func (o orders) TryPay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return o.Pay(ctx, r)
}

// Show reads an order.
func (o orders) Show(ctx context.Context, r *orderspb.ShowRequest) (*orderspb.Order, error) {
	return &orderspb.Order{OrderId: r.GetOrderId()}, work(ctx, usual)
}

// grpcServer is a server that lets calls end, for up to 10 s, when it stops.
type grpcServer struct{ *grpc.Server }

func (s grpcServer) stop(context.Context) error {
	hurry := time.AfterFunc(10*time.Second, s.Stop)
	defer hurry.Stop()
	s.GracefulStop()
	return nil
}
