// Command silent shows what clients with default settings notice when their server falls silent. It starts three servers as
// ZooKeeper's documentation configures them. A busy client holds, leads, waits and calls, another one keeps names, and an idle
// one holds. Then one server stops, and the command prints what that cost:
//
//	go run ./integration_test/silent                             # the follower with the most sessions
//	go run ./integration_test/silent -leader
//	go run ./integration_test/silent -drop                       # it runs, and nothing arrives there; needs root and iptables
//	go run ./integration_test/silent -keys session_timeout=10s
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func main() {
	leader := flag.Bool("leader", false, "the leader falls silent, in place of a follower")
	drop := flag.Bool("drop", false, "the network drops what is sent to the server, which runs")
	keys := flag.String("keys", "", "keys of the clients' URL")
	flag.Parse()
	ctx := context.Background()
	e := must(ensemble.New(ensemble.Config{Servers: 3, DirectQuorum: true, TickTime: 2 * time.Second, InitLimit: 10, SyncLimit: 5}))
	defer e.Close()

	var mu sync.Mutex
	at := make(map[int64]string) // the server of each session
	open := func(keys string) *zklock.Client {
		return must(zklock.Open(e.URL("/silent", must(url.ParseQuery(keys))), zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
			mu.Lock()
			defer mu.Unlock()
			at[e.ID] = e.Server
		}})))
	}
	busy, idle, keeper, rival := open(*keys), open(*keys), open(*keys+"&keep=5m"), open(*keys)
	held := []*zklock.Lock{must(election.New(busy, "leads").Campaign(ctx)).Lock}
	for i := range 20 {
		held = append(held, must(busy.Mutex(fmt.Sprint("busy-", i)).Acquire(ctx)), must(idle.Mutex(fmt.Sprint("idle-", i)).Acquire(ctx)))
	}
	ahead := must(rival.Mutex("waited").Acquire(ctx))
	<-time.After(held[0].SessionTimeout() / 3) // a lease is shorter after a while than when it is new

	server := must(e.Leader())
	if !*leader {
		mu.Lock()
		most := -1
		for _, s := range e.Followers() {
			n := 0
			for _, addr := range at {
				if addr == s.Addr() {
					n++
				}
			}
			if n > most {
				server, most = s, n
			}
		}
		mu.Unlock()
	}
	show := func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(at)
	}
	fmt.Println("The sessions are at", show(), "and", server, "falls silent.")
	if *drop {
		_, port, _ := net.SplitHostPort(server.Addr())
		rule := []string{"INPUT", "-p", "tcp", "--dport", port, "-j", "DROP"}
		must(exec.Command("iptables", append([]string{"-A"}, rule...)...).Output())
		defer exec.Command("iptables", append([]string{"-D"}, rule...)...).Run()
	} else if err := server.Freeze(); err != nil {
		log.Fatal(err)
	}

	var all sync.WaitGroup
	until := time.Now().Add(held[0].SessionTimeout())
	use := func(l *zklock.Lock, err error) error {
		if err == nil {
			err = l.Release(ctx)
		}
		return err
	}
	repeat := func(what string, call func() error) {
		all.Go(func() {
			longest, n, failed := time.Duration(0), 0, 0
			for ; n == 0 || time.Now().Before(until); n++ {
				from := time.Now()
				if call() != nil {
					failed++
				}
				longest = max(longest, time.Since(from))
				<-time.After(100 * time.Millisecond)
			}
			fmt.Printf("%-10s %4d calls, %d failed, the longest took %v\n", what, n, failed, longest.Round(10*time.Millisecond))
		})
	}
	repeat("acquire", func() error { return use(busy.Mutex("acquired").Acquire(ctx)) })
	repeat("try", func() error { return use(busy.Mutex("tried").TryAcquire(ctx)) })
	repeat("kept name", func() error { return use(keeper.Mutex("kept").Acquire(ctx)) })
	repeat("ping", func() error { return busy.Ping(ctx) })
	repeat("healthy", busy.Healthy)
	all.Go(func() {
		time.AfterFunc(time.Second, func() { _ = ahead.Release(ctx) })
		from := time.Now().Add(time.Second)
		err := use(busy.Mutex("waited").Acquire(ctx))
		fmt.Printf("%-10s granted %v after the holder before has left, error %v\n", "wait", time.Since(from).Round(10*time.Millisecond), err)
	})
	all.Wait()
	lost := 0
	for _, l := range held {
		if !l.Valid() {
			lost++
		}
	}
	fmt.Printf("%d of %d locks were lost. The sessions are at %v. ", lost, len(held), show())
	fmt.Println("The newest departures:", busy.Stats().Departure, "|", idle.Stats().Departure)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
