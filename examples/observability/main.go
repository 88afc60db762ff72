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
	"strings"
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

// flags are the settings of the command line.
type flags struct {
	url, name, http, grpc string
	otlp, prometheus      string
	elect                 string
	stdout                bool
	every, demo           time.Duration
}

func parse(args []string) (f flags, err error) {
	set := flag.NewFlagSet("observability", flag.ContinueOnError)
	set.StringVar(&f.url, "url", "mem://shop", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	set.StringVar(&f.name, "name", "shop", "name of this process: service.name in its spans and metrics")
	set.StringVar(&f.http, "http", "127.0.0.1:0", "address of the HTTP service")
	set.StringVar(&f.grpc, "grpc", "127.0.0.1:0", "address of the gRPC service")
	set.StringVar(&f.otlp, "otlp", "", "host:port of an OTLP collector (gRPC, without TLS)")
	set.StringVar(&f.prometheus, "prometheus", "", "address to serve /metrics at; :port means 127.0.0.1:port")
	set.StringVar(&f.elect, "elect", "", "name of an election in which this process stands")
	set.BoolVar(&f.stdout, "stdout", false, "print spans and metrics, as JSON")
	set.DurationVar(&f.every, "every", 5*time.Second, "how often metrics are sent or printed")
	set.DurationVar(&f.demo, "demo", 0, "how long to call the services before the program ends; 0: serve until interrupted")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if strings.HasPrefix(f.prometheus, ":") {
		f.prometheus = "127.0.0.1" + f.prometheus
	}
	return f, nil
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

	client, err := zklock.Open(f.url, zklock.WithHooks(t.hooks()))
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
	if f.elect != "" {
		stood := make(chan error, 1)
		go func() {
			err := stand(ctx, client, f.elect)
			if err != nil {
				cancel(err)
			}
			stood <- err
		}()
		defer func() {
			cancel(nil)
			err = errors.Join(err, <-stood)
		}()
	}
	fmt.Fprintf(log, "http %s grpc %s metrics %s\n", web.Addr(), rpc.Addr(), t.scraped)
	if f.demo > 0 {
		return demonstrate(ctx, f.demo, client, web.Addr().String(), rpc.Addr().String(), t)
	}
	<-ctx.Done()
	return nil
}
