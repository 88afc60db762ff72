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
	rounds  = 10 // of each: some payments, and one stream
	items   = 5  // in a stream
)

// order is the one that the i-th call is about; there are few, to quarrel over.
func order(i int) string { return fmt.Sprintf("A-%d", i%4) }

// tally is what the clients have done.
type tally struct {
	page
	servers map[string]int // calls by who served them
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

// callAll lets all clients call all servers at once.
func callAll(ctx context.Context, servers []*server) (tally, error) {
	t := tally{servers: make(map[string]int)}
	conns, stubs, err := dial(servers)
	if err != nil {
		return t, err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // of t
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

// call pays an order, or fills it with a stream.
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
			break // CloseAndRecv says why
		}
	}
	receipt, err := stream.CloseAndRecv()
	return receipt, page{items: items}, err
}

// refusal is what a client sees of a lock that somebody else has.
type refusal struct {
	err  error
	paid int64 // payments before somebody else had it
}

// collide fills an order at one server, and has the other one pay it meanwhile.
func collide(ctx context.Context, servers []*server) (r refusal, err error) {
	conns, stubs, err := dial(servers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeAll(conns)) }()
	ctx, abandon := context.WithTimeout(ctx, 30*time.Second)
	defer abandon() // ends the stream, and its lock
	stream, err := stubs[0].Fill(ctx)
	if err != nil {
		return r, err
	}
	if err := stream.Send(&orderspb.Item{OrderId: "B-1"}); err != nil {
		return r, err
	}
	pay := &orderspb.PayRequest{OrderId: "B-1"}
	for _, r.err = stubs[1].TryPay(ctx, pay); r.err == nil; _, r.err = stubs[1].TryPay(ctx, pay) {
		r.paid++ // the item has not arrived yet
	}
	return r, ctx.Err()
}

func (r refusal) summary(out io.Writer) error {
	code, reason := status.Code(r.err), interceptors.Reason(r.err)
	fmt.Fprintf(out, "  an order in other hands: %v, %s\n", code, reason)
	if code != codes.Aborted || reason != interceptors.ReasonContended {
		return fmt.Errorf("an order in other hands was refused with: %w", r.err)
	}
	return nil
}
