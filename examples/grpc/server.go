package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// server is one of the processes of a service, as far as locks can tell: it has
// a client and sessions of its own.
type server struct {
	address string
	client  *zklock.Client
	grpc    *grpc.Server
	served  chan error
}

func start(ctx context.Context, url, listen, name string, books *books, lock func(*zklock.Client) []grpc.ServerOption) (*server, error) {
	client, err := zklock.Open(url)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := &server{listener.Addr().String(), client, grpc.NewServer(lock(client)...), make(chan error, 1)}
	orderspb.RegisterOrdersServer(s.grpc, &orders{name: name, books: books})
	reflection.Register(s.grpc)
	// A declaration that cannot be followed is better found now than by a call.
	if err := interceptors.CheckProto(s.grpc); err != nil {
		return nil, errors.Join(err, listener.Close(), client.Close())
	}
	go func() { s.served <- s.grpc.Serve(listener) }()
	return s, nil
}

// stop lets calls under way end, and the locks go back, for a while.
func (s *server) stop() error {
	hurry := time.AfterFunc(5*time.Second, s.grpc.Stop)
	defer hurry.Stop()
	s.grpc.GracefulStop()
	err := <-s.served
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil // it was stopped before it had begun
	}
	return errors.Join(err, s.client.Close())
}

// orders is the service. There is nothing about locks in it.
type orders struct {
	orderspb.UnimplementedOrdersServer
	name  string
	books *books
}

// work is how long it takes to touch an order.
const work = time.Millisecond

// Pay charges an order.
func (o *orders) Pay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	leave := o.books.enter(ctx, r.GetOrderId())
	defer leave()
	page := o.books.read(r.GetOrderId())
	select {
	case <-time.After(work):
	case <-ctx.Done(): // the caller has gone, or the lock has
		return nil, context.Cause(ctx)
	}
	page.payments++ // undoes what anybody else wrote meanwhile
	o.books.write(r.GetOrderId(), page)
	return o.receipt(ctx), nil
}

// TryPay is Pay, but for what the .proto says about it.
func (o *orders) TryPay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return o.Pay(ctx, r)
}

// Show reads an order.
func (o *orders) Show(_ context.Context, r *orderspb.ShowRequest) (*orderspb.Order, error) {
	page := o.books.read(r.GetOrderId())
	return &orderspb.Order{OrderId: r.GetOrderId(), Payments: page.payments, Items: page.items}, nil
}

// Fill adds items to an order.
func (o *orders) Fill(stream grpc.ClientStreamingServer[orderspb.Item, orderspb.Receipt]) error {
	item, err := stream.Recv() // from here on the order is ours
	if err != nil {
		return err
	}
	id := item.GetOrderId()
	leave := o.books.enter(stream.Context(), id)
	defer leave()
	page := o.books.read(id)
	for ; err == nil; item, err = stream.Recv() {
		if item.GetOrderId() != id {
			return status.Errorf(codes.InvalidArgument, "items of orders %s and %s in one stream", id, item.GetOrderId())
		}
		page.items++
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("order not filled: %w", err)
	}
	o.books.write(id, page)
	return stream.SendAndClose(o.receipt(stream.Context()))
}

// receipt says under which lock an order was touched.
func (o *orders) receipt(ctx context.Context) *orderspb.Receipt {
	receipt := &orderspb.Receipt{Server: o.name}
	if lock, ok := zklock.FromContext(ctx); ok {
		receipt.Token = lock.Token().String()
	}
	return receipt
}
