// Command bench compares zklock with what a user would pick instead, on one
// real ZooKeeper server of its own or one that is there already: go-zookeeper's
// zk.Lock, and the raw floor of one create and one delete a cycle without any
// lock logic. Contestants take turns, A B C A B C, so that a noisy machine
// disturbs them alike; only ratios within one run mean anything.
//
//	go run ./integration_test/bench [-zk host:port] [-rounds 5] [-for 2s] [-run regexp]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

func main() {
	server := flag.String("zk", "", "host:port of a ZooKeeper server; empty: start one")
	rounds := flag.Int("rounds", 5, "how many turns each contestant takes")
	length := flag.Duration("for", 2*time.Second, "how long a turn takes")
	only := flag.String("run", ".", "which workloads, as a regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *server, *rounds, *length, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server string, rounds int, length time.Duration, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if server == "" {
		e, err := ensemble.New(ensemble.Config{})
		if err != nil {
			return err
		}
		defer e.Close()
		server = e.Hosts()
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "workload\tcontestant\tcycles/s\tacquire p50\tp99\trelease p50\tzklock against it")
	for _, w := range workloads {
		if !pattern.MatchString(w.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ...\n", w.name)
		results := make([][]result, len(contestants))
		for range rounds {
			for i, c := range contestants {
				r, err := measure(ctx, c, w, server, length)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", w.name, c.name, err)
				}
				results[i] = append(results[i], r)
			}
		}
		ours := median(results[0])
		for i, c := range contestants {
			m := median(results[i])
			ratio := ""
			if i > 0 {
				ratio = fmt.Sprintf("%.2fx cycles, %.2fx p50", ours.rate/m.rate, float64(ours.acquire50)/float64(m.acquire50))
			}
			fmt.Fprintf(table, "%s\t%s\t%.0f\t%v\t%v\t%v\t%s\n", w.name, c.name, m.rate,
				m.acquire50.Round(time.Microsecond), m.acquire99.Round(time.Microsecond), m.release50.Round(time.Microsecond), ratio)
		}
	}
	return table.Flush()
}

// median is the result with the median rate.
func median(results []result) result {
	sorted := slices.SortedFunc(slices.Values(results), func(a, b result) int {
		switch {
		case a.rate < b.rate:
			return -1
		case a.rate > b.rate:
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}
