package outerctx

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/fence"
)

func literal(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, lock *zklock.Lock) error {
		work, cancel := context.WithTimeout(context.Background(), time.Second) // want `context.Background\(\) does not end when the lock of zklock.Do is lost: use held`
		defer cancel()
		if err := serve(work); err != nil {
			return serve(context.Background())
		}
		return charge(context.TODO(), lock.Token()) // want `context.TODO\(\) does not end when the lock of zklock.Do is lost: use held`
	})
}

func literalUnnamed(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(context.Context, *zklock.Lock) error {
		return serve(context.Background()) // want `context.Background\(\) does not end when the lock of zklock.Do is lost: use the context that the function gets`
	})
}

var background = context.Background()

// literalInAVariable has the literal under a name, which the fix does not take away.
func literalInAVariable(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, lock *zklock.Lock) error {
		bg := context.Background()
		if err := serve(bg); err != nil { // want `bg does not end when the lock of zklock.Do is lost: use held`
			return serve(bg)
		}
		either := context.Background()
		if lock != nil {
			either = held
		}
		defer serve(bg)
		return errors.Join(serve(either), serve(background)) // want `background does not end when the lock of zklock.Do is lost: use held`
	})
}

func inTx(ctx context.Context, db *sql.DB, lock *zklock.Lock) error {
	return fence.InTx(ctx, db, fence.PostgreSQL, lock, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 1"); err != nil {
			return err
		}
		_, err := tx.ExecContext(context.Background(), "UPDATE accounts SET balance = balance + 1") // want `context.Background\(\) does not end when the lock of fence.InTx is lost: use ctx`
		return err
	})
}

func web(client *zklock.Client, mux *http.ServeMux, db *sql.DB) {
	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"))
	mux.Handle("POST /orders/{id}/return", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = db.ExecContext(context.Background(), "UPDATE orders SET state = 'returned'") // want `context.Background\(\) does not end when the lock of middleware.New is lost: use r.Context\(\)`
	})))
}

// behind is a handler of another package's mux: that it looks for the lock shows that it runs under one.
func behind(w http.ResponseWriter, r *http.Request) {
	lock, ok := zklock.FromContext(r.Context())
	if !ok {
		return
	}
	_ = charge(context.Background(), lock.Token()) // want `context.Background\(\) does not end when the lock of zklock.FromContext is lost: use r.Context\(\)`
}

type payRequest struct{}

type payReply struct{}

func RegisterShopServer(s *grpc.Server, srv *shop) {}

type shop struct{}

func (*shop) Pay(ctx context.Context, req *payRequest) (*payReply, error) {
	if err := serve(context.Background()); err != nil { // want `context.Background\(\) does not end when the lock of the interceptor is lost: use ctx`
		return nil, err
	}
	slog.InfoContext(context.Background(), "paid")
	return new(payReply), nil
}

func (*shop) Watch(req *payRequest, stream grpc.ServerStream) error {
	return serve(context.Background()) // want `context.Background\(\) does not end when the lock of the interceptor is lost: use stream.Context\(\)`
}

func (*shop) audit(ctx context.Context) error { return serve(context.Background()) } // not a method of the service

func serveGRPC(pick interceptors.Pick) {
	server := grpc.NewServer(grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick)))
	RegisterShopServer(server, new(shop))
}

// lead shuts down when its term ends, which has to take longer than the term.
func lead(ctx context.Context, e *election.Election, server *http.Server) error {
	return e.Run(ctx, func(term context.Context, _ *election.Term) error {
		<-term.Done()
		stop, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return server.Shutdown(stop)
	})
}
