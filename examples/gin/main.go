// Command gin is an order service with several replicas, on gin. One request at a time
// works on an order, whichever replica received it. All replicas together make one report at
// a time. Without flags the command starts two replicas on an ensemble in memory, sends them
// a burst of requests, prints a summary, and ends. A second request for a report gets a 409:
//
//	go run ./examples/gin -listen 127.0.0.1:8080,127.0.0.1:8081
//	curl -X POST '127.0.0.1:8080/reports/2025?for=3s' & sleep 1; curl -i -X POST 127.0.0.1:8081/reports/2026
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

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"  // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver" // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gin", flag.ContinueOnError)
	url := flags.String("url", "mem://gin-shop", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	listen := flags.String("listen", "", "addresses, joined by commas: start a replica at each, and serve until interrupted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	addrs := strings.Split(*listen, ",")
	if *listen == "" {
		addrs = []string{"127.0.0.1:0", "127.0.0.1:0"}
	}
	gin.SetMode(gin.ReleaseMode)
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
		srv := &http.Server{Handler: router(client, &s), ReadHeaderTimeout: 10 * time.Second}
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

// router returns the handler of one replica.
func router(client *zklock.Client, s *shop) http.Handler {
	r := gin.New()
	r.Use(gin.Recovery()) // outside of the lock, like all middleware that handles whole requests
	one := ginlock.New(ginlock.ByParam(client, "id", "orders/%s"), middleware.WithWait(5*time.Second))
	r.POST("/orders/:id/pay", one, s.work)
	all := ginlock.New(ginlock.ByFullPath(client, "routes/%s"), middleware.WithWait(0), middleware.WithStatus(http.StatusConflict))
	r.POST("/reports/:id", all, s.work) // one lock for all ids
	r.POST("/expire", func(*gin.Context) {
		memdriver.Named("gin-shop").ExpireAll() // ends all sessions, as a long network partition does; on mem://gin-shop only
	})
	return r
}

// shop simulates a database. It reads and writes a counter in separate steps, so the
// count is right only if the lock keeps other requests out.
type shop struct{ orders sync.Map }

type order struct{ busy, done, overlaps int }

// work handles a request. It takes as long as the parameter "for" says, 2 ms by default.
// It stops early when the lock is lost or the client disconnects.
func (s *shop) work(c *gin.Context) {
	took, err := time.ParseDuration(c.DefaultQuery("for", "2ms"))
	if err != nil {
		c.String(http.StatusBadRequest, "bad duration in the parameter for: want one like 3s")
		return
	}
	v, _ := s.orders.LoadOrStore(c.Request.URL.Path, new(order))
	o := v.(*order)
	if o.busy++; o.busy > 1 {
		o.overlaps++
	}
	defer func() { o.busy-- }()
	done := o.done
	select {
	case <-time.After(took):
	case <-c.Request.Context().Done(): // the lock is lost, or the client has disconnected
		c.AbortWithStatus(http.StatusServiceUnavailable) // after a loss, ginlock answers instead
		return
	}
	o.done = done + 1
	c.JSON(http.StatusOK, gin.H{"path": c.Request.URL.Path, "done": o.done})
}

// burst sends all requests at the same time, to the replicas in turn, and checks that
// requests for one order did not overlap.
func burst(addrs []string, s *shop, out io.Writer) error {
	const requests, orders = 400, 10
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			resp, err := http.Post(fmt.Sprintf("http://%s/orders/%d/pay", addrs[i%len(addrs)], i%orders), "", nil)
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	done, overlaps := 0, 0
	s.orders.Range(func(_, v any) bool {
		done, overlaps = done+v.(*order).done, overlaps+v.(*order).overlaps
		return true
	})
	fmt.Fprintf(out, "%d requests for %d orders at %d replicas: the counters add up to %d, %d requests overlapped\n", requests, orders, len(addrs), done, overlaps)
	if done != requests || overlaps > 0 {
		return errors.New("requests for one order overlapped, or some requests failed")
	}
	fmt.Fprintln(out, "ok: one request at a time for each order")
	return nil
}
