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

// server is one server of the service. It has its own client and sessions, so for locks
// it is like a separate process.
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
	// Without this check, a lock declaration with a mistake would make each call of its
	// method fail. The server would start nevertheless.
	if err := interceptors.CheckProto(s.grpc); err != nil {
		return nil, errors.Join(err, listener.Close(), client.Close())
	}
	go func() { s.served <- s.grpc.Serve(listener) }()
	return s, nil
}

// stop waits until the calls under way have ended and released their locks. After 5 s it
// cancels them.
func (s *server) stop() error {
	hurry := time.AfterFunc(5*time.Second, s.grpc.Stop)
	defer hurry.Stop()
	s.grpc.GracefulStop()
	err := <-s.served
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil // stop was called before Serve
	}
	return errors.Join(err, s.client.Close())
}

// orders implements the service. It acquires no locks: the interceptors do.
type orders struct {
	orderspb.UnimplementedOrdersServer
	name  string
	books *books
}

// work is how long a payment takes.
const work = time.Millisecond

// Pay charges an order.
func (o *orders) Pay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	leave := o.books.enter(ctx, r.GetOrderId())
	defer leave()
	page := o.books.read(r.GetOrderId())
	select {
	case <-time.After(work):
	case <-ctx.Done(): // the caller has gone, or the lock is lost
		return nil, context.Cause(ctx)
	}
	page.payments++ // without the lock, this would undo what other calls have written since
	o.books.write(r.GetOrderId(), page)
	return o.receipt(ctx), nil
}

// TryPay does the same as Pay. What differs is the wait for the lock, which the .proto
// declares.
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
	item, err := stream.Recv() // returns when the stream holds the lock
	if err != nil {
		return err
	}
	id := item.GetOrderId()
	leave := o.books.enter(stream.Context(), id)
	defer leave()
	page := o.books.read(id)
	for ; err == nil; item, err = stream.Recv() {
		if item.GetOrderId() != id {
			return status.Errorf(codes.InvalidArgument, "the stream has items of orders %s and %s: send one stream for each order", id, item.GetOrderId())
		}
		page.items++
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream broke off, the order was not changed: %w", err)
	}
	o.books.write(id, page)
	return stream.SendAndClose(o.receipt(stream.Context()))
}

// receipt returns the server's name and the fencing token of the lock that the call
// holds.
func (o *orders) receipt(ctx context.Context) *orderspb.Receipt {
	receipt := &orderspb.Receipt{Server: o.name}
	if lock, ok := zklock.FromContext(ctx); ok {
		receipt.Token = lock.Token().String()
	}
	return receipt
}
