package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/zklock"
)

const (
	customers = 6   // that call at the same time
	few       = 3   // orders, so that customers contend
	slow      = 100 // of 100 HTTP calls, one payment takes a second, and one is an export, which does too
)

// demonstrate calls the services for d. Customers pay and show a few orders, over HTTP and
// over gRPC, with pauses between their calls. Now and then one exports an order, and an operator
// asks for the lock of the export.
func demonstrate(ctx context.Context, d time.Duration, client *zklock.Client, web, rpc string, t *telemetry) error {
	// The first session takes a while, which d does not include.
	if err := client.Ping(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(t.traces), otelgrpc.WithMeterProvider(t.meters), otelgrpc.WithPropagators(t.propagator))))
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	c := caller{
		http: &http.Client{Transport: otelhttp.NewTransport(transport,
			otelhttp.WithTracerProvider(t.traces), otelhttp.WithMeterProvider(t.meters), otelhttp.WithPropagators(t.propagator))},
		web:    web,
		orders: orderspb.NewOrdersClient(conn),
	}
	var wg sync.WaitGroup
	errs := make([]error, customers)
	for i := range customers {
		wg.Go(func() {
			for errs[i] == nil && work(ctx, time.Duration(rand.Int64N(int64(100*time.Millisecond)))) == nil {
				errs[i] = c.call(ctx)
			}
			if ctx.Err() != nil {
				errs[i] = nil // the demonstration is over, which ends calls under way
			}
		})
	}
	wg.Go(func() {
		for work(ctx, 100*time.Millisecond) == nil {
			revokeExports(ctx, client)
		}
	})
	wg.Wait()
	transport.CloseIdleConnections()
	return errors.Join(append(errs, conn.Close())...)
}

// revokeExports asks the exports that hold a lock to give it back. Errors are not important: the
// operator looks again.
func revokeExports(ctx context.Context, client *zklock.Client) {
	for found := range client.Locks(ctx, "orders/") {
		for _, c := range found.Contenders {
			if c.Held && c.Label == exported && c.Revoked == "" {
				_ = client.Revoke(ctx, found.Name, c.Node, "demonstration")
			}
		}
	}
}

// caller calls the services.
type caller struct {
	http   *http.Client
	web    string
	orders orderspb.OrdersClient
}

// call makes one call of a random kind. A call that the service refuses is not an error.
func (c caller) call(ctx context.Context) error {
	order := fmt.Sprint(rand.IntN(few))
	switch rand.IntN(4) {
	case 0:
		_, _ = c.orders.Show(ctx, &orderspb.ShowRequest{OrderId: order})
		return nil
	case 1:
		_, _ = c.orders.TryPay(ctx, &orderspb.PayRequest{OrderId: order})
		return nil
	case 2:
		_, _ = c.orders.Pay(ctx, &orderspb.PayRequest{OrderId: order})
		return nil
	}
	took := time.Duration(5+rand.IntN(40)) * time.Millisecond
	if rand.IntN(slow) == 0 {
		took = time.Second
	}
	do := fmt.Sprintf("pay?for=%v", took)
	if rand.IntN(slow) == 0 {
		do = "export"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/orders/%s/%s", c.web, order, do), nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
