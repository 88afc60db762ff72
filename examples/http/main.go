// Command http is an order service with several replicas. One request at a time works
// on an order, whichever replica received it. Without flags the command starts two
// replicas on an ensemble in memory, sends them a burst of requests, prints a summary,
// and ends. The README shows how to try it by hand.
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
	"sync"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"  // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver" // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	url := flags.String("url", "mem://shop", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	listen := flags.String("listen", "", "addresses, joined by commas: start a replica at each, and serve until interrupted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	addrs := strings.Split(*listen, ",")
	if *listen == "" {
		addrs = []string{"127.0.0.1:0", "127.0.0.1:0"}
	}
	var s shop
	for i, addr := range addrs {
		client, err := zklock.Open(*url) // one for each replica, as if each were a process
		if err != nil {
			return err
		}
		defer client.Close()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		addrs[i] = l.Addr().String()
		srv := &http.Server{Handler: routes(client, &s), ReadHeaderTimeout: 10 * time.Second}
		defer srv.Shutdown(context.WithoutCancel(ctx)) // runs before client.Close: requests end and release their locks
		go srv.Serve(l)
		fmt.Fprintln(out, "serving on", addrs[i])
	}
	if *listen != "" {
		<-ctx.Done()
		return nil
	}
	return burst(addrs, &s, out)
}

// routes returns the handler of one replica.
func routes(client *zklock.Client, s *shop) http.Handler {
	order := middleware.ByPathValue(client, "id", "orders/%s")
	wait := middleware.New(order, middleware.WithWait(5*time.Second), middleware.WithTokenHeader("X-Lock-Token"))
	try := middleware.New(order, middleware.WithWait(0), middleware.WithStatus(http.StatusConflict))
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", wait(http.HandlerFunc(s.work)))
	mux.Handle("POST /orders/{id}/cancel", try(http.HandlerFunc(s.work)))
	mux.HandleFunc("POST /expire", func(http.ResponseWriter, *http.Request) {
		memdriver.Named("shop").ExpireAll() // ends all sessions, as a long network partition does; on mem://shop only
	})
	return withProbes(mux, client)
}

// shop simulates a database. It reads and writes a counter in separate steps, so the
// count is right only if the lock keeps other requests out.
type shop struct{ orders sync.Map }

type order struct{ busy, done, overlaps int }

// work takes as long as ?for says, 2 ms by default, and stops early if its context ends.
func (s *shop) work(w http.ResponseWriter, r *http.Request) {
	took, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil {
		took = 2 * time.Millisecond
	}
	v, _ := s.orders.LoadOrStore(r.PathValue("id"), new(order))
	o := v.(*order)
	if o.busy++; o.busy > 1 {
		o.overlaps++
	}
	defer func() { o.busy-- }()
	done := o.done
	select {
	case <-time.After(took):
	case <-r.Context().Done(): // the lock is lost, or the client has disconnected
		http.Error(w, "stopped early", http.StatusServiceUnavailable) // after a loss, the middleware answers instead
		return
	}
	o.done = done + 1
	lock, _ := zklock.FromContext(r.Context())
	fmt.Fprintf(w, "%s done, %d so far for this order, fencing token %v\n", r.URL.Path, o.done, lock.Token())
}

// burst sends all requests at the same time, to the replicas in turn.
func burst(addrs []string, s *shop, out io.Writer) error {
	const requests, orders = 400, 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := make(map[int]int) // by status
	start := time.Now()
	for i := range requests {
		wg.Go(func() {
			resp, err := http.Post(fmt.Sprintf("http://%s/orders/%d/pay", addrs[i%len(addrs)], i%orders), "", nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fmt.Fprintln(out, err)
				return
			}
			answers[resp.StatusCode]++
			resp.Body.Close()
		})
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	done, overlaps := 0, 0
	s.orders.Range(func(_, v any) bool {
		done, overlaps = done+v.(*order).done, overlaps+v.(*order).overlaps
		return true
	})
	fmt.Fprintf(out, "%d requests for %d orders at %d replicas took %v\n", requests, orders, len(addrs), time.Since(start).Round(time.Millisecond))
	fmt.Fprintf(out, "answers by status: %v; the counters add up to %d, %d requests overlapped\n", answers, done, overlaps)
	if done != requests || answers[200] != requests || overlaps > 0 {
		return errors.New("requests for one order overlapped, or some requests failed")
	}
	fmt.Fprintln(out, "ok: one request at a time for each order")
	return nil
}
