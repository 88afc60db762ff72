// Command testing is a nightly job that several replicas start at once and one
// of them does, a step at a time. The job is not what it is about: main_test.go
// is, which has the tests that such a job should have, without a server:
//
//	go test -v ./examples/testing
//
// One takes the lock away in the middle of the work, one lets another replica be
// faster, one lets a reply get lost, one takes the ensemble away. By itself the
// command runs three replicas, on an ensemble in memory or with -url on another.
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

// job is the work of a night. What it needs of the world is passed in, so that
// a test can be the world.
type job struct {
	client *zklock.Client
	steps  []string
	do     func(ctx context.Context, step string, token zklock.Token) error
}

// errElsewhere says that another replica is at work.
var errElsewhere = errors.New("another replica does it")

// run does all steps under the lock, and stops between two of them when the lock
// is lost: what it has not begun by then, the next holder does.
func (j *job) run(ctx context.Context) error {
	err := zklock.Do(ctx, j.client.Mutex("jobs/nightly"), func(ctx context.Context) error {
		lock, _ := zklock.FromContext(ctx)
		for _, step := range j.steps {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			// The token goes with each step: what is under way when the lock is
			// lost can only be refused by whom it is sent to.
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

// run starts three replicas at once.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("testing", flag.ContinueOnError)
	url := flags.String("url", "mem://testing", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	const replicas = 3
	var mu sync.Mutex
	done := make(map[string]int) // how often, by step
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
			select { // work until the others have been refused
			case <-finish:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
		wg.Go(func() {
			if errs[i] = j.run(ctx); errs[i] == nil {
				fmt.Fprintln(out, "one replica did it")
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
		return fmt.Errorf("steps were done this often: %v", done)
	}
	return nil
}
