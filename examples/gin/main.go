// Command gin is an order service with replicas, on gin: each order is worked
// on by one request at a time, whichever replica that went to, and a report is
// made once at a time for all of them. Without flags it runs two replicas on an
// ensemble in memory, sends them a burst of requests, says what came of it, and
// ends. See the README for more.
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
	url := flags.String("url", "mem://gin-shop", "the ensemble")
	listen := flags.String("listen", "", "addresses of replicas, joined by commas, that serve until interrupted")
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
		client, err := zklock.Open(*url) // each replica has its own, as a process would
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
		defer srv.Shutdown(context.WithoutCancel(ctx)) // before the client closes: requests end in order
		go srv.Serve(l)
		fmt.Fprintln(out, "serving on", addrs[i])
	}
	if *listen != "" {
		<-ctx.Done()
		return nil
	}
	return burst(addrs, &s, out)
}

// router is that of one replica.
func router(client *zklock.Client, s *shop) http.Handler {
	r := gin.New()
	r.Use(gin.Recovery()) // outside of the lock, like everything that sees requests as a whole
	one := ginlock.New(ginlock.ByParam(client, "id", "orders/%s"), middleware.WithWait(5*time.Second))
	r.POST("/orders/:id/pay", one, s.work)
	all := ginlock.New(ginlock.ByFullPath(client, "routes/%s"), middleware.WithTry(), middleware.WithStatus(http.StatusConflict))
	r.POST("/reports/:id", all, s.work) // one lock, whatever the id
	r.POST("/expire", func(*gin.Context) {
		memdriver.Named("gin-shop").ExpireAll() // what a partition does, without the wait; on mem://gin-shop only
	})
	return r
}

// shop stands for the database. It counts in steps that only the lock keeps
// together.
type shop struct{ orders sync.Map }

type order struct{ busy, done, overlaps int }

// work takes as long as ?for says, or until the lock is lost.
func (s *shop) work(c *gin.Context) {
	took, err := time.ParseDuration(c.DefaultQuery("for", "2ms"))
	if err != nil {
		c.String(http.StatusBadRequest, "bad duration")
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
	case <-c.Request.Context().Done(): // lost, or the client has gone
		c.AbortWithStatus(http.StatusServiceUnavailable) // after a loss ginlock has its own answer
		return
	}
	o.done = done + 1
	c.JSON(http.StatusOK, gin.H{"path": c.Request.URL.Path, "done": o.done})
}

// burst sends requests to the replicas in turn, all at once.
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
	fmt.Fprintf(out, "%d requests for %d orders at %d replicas: counted %d, overlaps %d\n", requests, orders, len(addrs), done, overlaps)
	if done != requests || overlaps > 0 {
		return errors.New("requests for one order got in each other's way, or were not served")
	}
	fmt.Fprintln(out, "ok: one request at a time for each order")
	return nil
}
