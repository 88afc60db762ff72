// Command observability is an order service, over HTTP and over gRPC. Its traces show which
// request blocks which. Spans go to an OTLP collector such as Jaeger's, metrics to the
// collector or to Prometheus, and with -stdout both to standard output.
//
//	go run . -demo 10s -stdout
//	go run . -url zk://127.0.0.1:2181/shop -name north -otlp 127.0.0.1:4317 -prometheus :9464
//
// Run it twice on one ensemble, and requests to one process wait for requests to the other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver" // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver"  // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		os.Exit(1)
	}
}

// run prints spans and metrics to out, and everything else to log.
func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	t, err := export(ctx, f, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.shutdown(context.WithoutCancel(ctx))) }()

	client, err := zklock.Open(f.url, zklock.WithHooks(t.hooks()), zklock.WithIdentity(zklock.Identity{Host: f.name, PID: os.Getpid()}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	stats, err := tracing.RegisterStats(client, tracing.WithMeterProvider(t.meters))
	if err != nil {
		return err
	}
	defer func() {
		// The figures of Stats are collected a last time before they are unregistered.
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, t.meters.ForceFlush(flush), stats.Unregister())
	}()
	return serve(ctx, f, client, t, log)
}

// serve runs the services until ctx ends, one of them fails, or the demonstration is over.
func serve(ctx context.Context, f flags, client *zklock.Client, t *telemetry, log io.Writer) (err error) {
	web, err := net.Listen("tcp", f.http)
	if err != nil {
		return err
	}
	rpc, err := net.Listen("tcp", f.grpc)
	if err != nil {
		return errors.Join(err, web.Close())
	}
	servers := []interface {
		Serve(net.Listener) error
		stop(context.Context) error
	}{
		httpServer{&http.Server{Handler: httpService(client, t), ReadHeaderTimeout: 10 * time.Second}},
		grpcServer{grpcService(client, t, f.name)},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, len(servers))
	for i, l := range []net.Listener{web, rpc} {
		go func() {
			err := servers[i].Serve(l)
			cancel(err) // when one service ends, so does the other
			served <- err
		}()
	}
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
		for range servers {
			if e := <-served; !errors.Is(e, http.ErrServerClosed) && !errors.Is(e, grpc.ErrServerStopped) {
				err = errors.Join(err, e)
			}
		}
	}()
	end := stand(ctx, cancel, client, f.elect)
	defer func() { err = errors.Join(err, end()) }()
	fmt.Fprintf(log, "http %s grpc %s metrics %s\n", web.Addr(), rpc.Addr(), t.scraped)
	if f.demo > 0 {
		return demonstrate(ctx, f.demo, client, web.Addr().String(), rpc.Addr().String(), t)
	}
	<-ctx.Done()
	return nil
}
