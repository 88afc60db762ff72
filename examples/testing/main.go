// Command testing is a nightly job of several steps. Several replicas start the job at the
// same time, and one of them does it. The example is about its tests: main_test.go has
// those that such a job should have, and they need no server:
//
//	go test -v ./examples/testing
//
// The first test takes the lock away in the middle of the work. The second lets another
// replica hold the lock. The third loses a reply of the ensemble, and the fourth makes the
// ensemble unreachable. The command itself runs three replicas, on an ensemble in memory,
// or with -url on another.
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

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver" // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver"  // zk:// and zks://
)

// job is the work of one night. Its fields are everything that it depends on, so that a
// test can replace each of them.
type job struct {
	client *zklock.Client
	steps  []string
	do     func(ctx context.Context, step string, token zklock.Token) error
}

// errElsewhere means that another replica holds the lock of the job.
var errElsewhere = errors.New("another replica does the job")

// run does all steps while it holds the lock. When the lock is lost it begins no further
// step, because the next holder may be doing the job already.
func (j *job) run(ctx context.Context) error {
	err := zklock.Do(ctx, j.client.Mutex("jobs/nightly"), func(ctx context.Context, lock *zklock.Lock) error {
		for _, step := range j.steps {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			// Each step passes the fencing token on. If the lock is lost while a
			// request of the step is under way, only its receiver can refuse it.
			if err := j.do(ctx, step, lock.Token()); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
		return nil
	}, zklock.WithWait(0))
	if errors.Is(err, zklock.ErrNotAcquired) {
		return errElsewhere
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "testing:", err)
		os.Exit(1)
	}
}

// run starts three replicas at the same time, and checks that one of them did the job and
// the others did not.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("testing", flag.ContinueOnError)
	url := flags.String("url", "mem://testing", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	const replicas = 3
	var mu sync.Mutex
	done := make(map[string]int) // how often each step was done
	finish := make(chan struct{})
	var errs [replicas]error
	var wg sync.WaitGroup
	failed := make(chan struct{}, replicas)
	for i := range replicas {
		client, err := zklock.Open(*url)
		if err != nil {
			return err
		}
		defer client.Close()
		j := &job{client: client, steps: []string{"bills", "mails"}, do: func(ctx context.Context, step string, _ zklock.Token) error {
			mu.Lock()
			done[step]++
			mu.Unlock()
			select { // work until the other replicas have given up
			case <-finish:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
		wg.Go(func() {
			if errs[i] = j.run(ctx); errs[i] == nil {
				fmt.Fprintln(out, "one replica did the job")
			} else {
				failed <- struct{}{}
			}
		})
	}
	for range replicas - 1 {
		<-failed
	}
	close(finish)
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errElsewhere) {
			return err
		}
	}
	if done["bills"] != 1 || done["mails"] != 1 {
		return fmt.Errorf("the counts of the steps are %v, want 1 for each", done)
	}
	return nil
}
