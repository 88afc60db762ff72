// Command herd measures what it costs to wake the waiters of a lock, with three recipes:
// all waiters watch one lock node, all watch the children of one znode, or each watches the
// node ahead of its own, as zklock does.
//
//	go run ./examples/herd -server 127.0.0.1:2181
//
// One session holds the lock and 200 wait. When the holder releases it, each waiter takes
// the lock once and passes it on. The numbers are the server's own counters: notifications
// are watchers notified, reads are requests without a transaction. zklock makes two reads
// for each release: the next holder lists the queue again, and reads its own node. The
// server has to allow that many connections from one address (maxClientCnxns=0) and the
// command mntr (4lw.commands.whitelist=mntr).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "herd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	server := flags.String("server", "127.0.0.1:2181", "a ZooKeeper server, `host:port`; its ensemble must have no other, because a server counts only its own requests")
	waiters := flags.Int("waiters", 200, "number of sessions that wait")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := look(*server); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "recipe\twaiters\tnotifications\treads\ttime until all had it\t")
	for _, r := range recipes {
		cost, err := drain(ctx, r, *server, *waiters)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%v\t\n", r.name, *waiters, cost.notifications, cost.reads, cost.took.Round(time.Millisecond))
	}
	return w.Flush()
}

// cost is what it took until every waiter had held the lock.
type cost struct {
	counters
	took time.Duration
}

// crowded adds advice to err if a server that has opened some sessions refuses one more
// connection: the reason is probably its limit on connections from one address.
func crowded(err error, open, waiters int) error {
	if open == 0 || !errors.Is(err, errNoSession) && !errors.Is(err, errNoCounters) && !errors.Is(err, zklock.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("the server has opened %d sessions and accepts no more connections: set its maxClientCnxns, the limit for one address (60 by default), to 0 or to at least %d: %w", open, waiters+2, err)
}

// drain lets one member hold the lock while n wait. Then it measures what happens until
// each of the n has held the lock once.
func drain(ctx context.Context, r recipe, server string, n int) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	members := make([]member, n+1)
	defer func() {
		var wg sync.WaitGroup
		for _, m := range members {
			if m != nil {
				wg.Go(m.close)
			}
		}
		wg.Wait()
	}()
	for i := range members {
		var err error
		if members[i], err = r.join(ctx, server); err != nil {
			return cost{}, crowded(err, i, n)
		}
	}
	release, err := members[0].acquire(ctx, func() {})
	if err != nil {
		return cost{}, err
	}
	waits, errs := make(chan struct{}, n), make(chan error, n)
	for _, m := range members[1:] {
		go func() {
			var once sync.Once
			release, err := m.acquire(ctx, func() { once.Do(func() { waits <- struct{}{} }) })
			if err == nil {
				err = release()
			}
			errs <- err
		}()
	}
	failed := 0
	for range n {
		select {
		case <-waits:
		case e := <-errs: // no waiter should end its wait before the release
			failed++
			err = errors.Join(err, e)
			cancel()
		}
	}
	var before, after counters
	if err == nil {
		if before, err = settled(ctx, server); err != nil {
			err = crowded(err, n+1, n)
		}
	}
	if err != nil {
		cancel()
	}
	start := time.Now()
	err = errors.Join(err, release())
	for range n - failed {
		// After an error drain cancels the waits. Their context.Canceled adds nothing to err.
		if e := <-errs; err == nil || !errors.Is(e, context.Canceled) {
			err = errors.Join(err, e)
		}
	}
	took := time.Since(start)
	if err == nil {
		after, err = settled(ctx, server)
	}
	return cost{after.since(before), took}, err
}
