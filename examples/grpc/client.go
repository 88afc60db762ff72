package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
)

const (
	clients = 12 // at once
	rounds  = 10 // calls of each client: seven payments and three streams
	items   = 5  // in a stream
)

// order returns the order of the i-th call. There are only four, so that calls contend.
func order(i int) string { return fmt.Sprintf("A-%d", i%4) }

// tally counts what the clients have done.
type tally struct {
	page
	servers map[string]int // calls by the server that served them
}

// dial connects to all servers.
func dial(servers []*server) (conns []*grpc.ClientConn, stubs []orderspb.OrdersClient, err error) {
	for _, s := range servers {
		conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return conns, nil, errors.Join(err, closeAll(conns))
		}
		conns = append(conns, conn)
		stubs = append(stubs, orderspb.NewOrdersClient(conn))
	}
	return conns, stubs, nil
}

func closeAll(conns []*grpc.ClientConn) (err error) {
	for _, conn := range conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// callAll lets all clients call at the same time, each of them both servers in turn.
func callAll(ctx context.Context, servers []*server) (tally, error) {
	t := tally{servers: make(map[string]int)}
	conns, stubs, err := dial(servers)
	if err != nil {
		return t, err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards t
		errs = make([]error, clients)
	)
	for c := range clients {
		wg.Go(func() {
			for r := range rounds {
				receipt, did, err := call(ctx, stubs[(c+r)%len(stubs)], c+r, r%3 == 2)
				if err != nil {
					errs[c] = fmt.Errorf("client %d: %w", c, err)
					return
				}
				mu.Lock()
				t.payments += did.payments
				t.items += did.items
				t.servers[receipt.GetServer()]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return t, errors.Join(append(errs, closeAll(conns))...)
}

// call pays an order, or adds items to it with a stream. It returns the receipt, and what
// the books should have gained.
func call(ctx context.Context, stub orderspb.OrdersClient, i int, fill bool) (*orderspb.Receipt, page, error) {
	if !fill {
		receipt, err := stub.Pay(ctx, &orderspb.PayRequest{OrderId: order(i)})
		return receipt, page{payments: 1}, err
	}
	stream, err := stub.Fill(ctx)
	if err != nil {
		return nil, page{}, err
	}
	for n := range items {
		if err := stream.Send(&orderspb.Item{OrderId: order(i), Sku: fmt.Sprint(n)}); err != nil {
			break // CloseAndRecv returns the reason
		}
	}
	receipt, err := stream.CloseAndRecv()
	return receipt, page{items: items}, err
}

// refusal is the answer to a call for an order that another call has locked.
type refusal struct {
	err  error
	paid int64 // payments that succeeded before the order was locked
}

// collide locks an order with a stream at one server, and pays it at the other until a
// payment is refused.
func collide(ctx context.Context, servers []*server) (r refusal, err error) {
	conns, stubs, err := dial(servers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeAll(conns)) }()
	ctx, abandon := context.WithTimeout(ctx, 30*time.Second)
	defer abandon() // ends the stream, which releases its lock
	stream, err := stubs[0].Fill(ctx)
	if err != nil {
		return r, err
	}
	if err := stream.Send(&orderspb.Item{OrderId: "B-1"}); err != nil {
		return r, err
	}
	pay := &orderspb.PayRequest{OrderId: "B-1"}
	for _, r.err = stubs[1].TryPay(ctx, pay); r.err == nil; _, r.err = stubs[1].TryPay(ctx, pay) {
		r.paid++ // the stream does not have the lock yet
	}
	return r, ctx.Err()
}

func (r refusal) summary(out io.Writer) error {
	code, reason := status.Code(r.err), interceptors.Reason(r.err)
	fmt.Fprintf(out, "  an order that another call has locked is refused with %v, %s\n", code, reason)
	if code != codes.Aborted || reason != interceptors.ReasonContended {
		return fmt.Errorf("an order that another call has locked: want Aborted and LOCK_CONTENDED, got: %w", r.err)
	}
	return nil
}
