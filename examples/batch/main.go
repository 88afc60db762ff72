// Command batch is a batch job in a SQL database that survives a pause of its process: it
// writes one invoice for each customer. Two workers run the same job. The first one is
// paused between its last look at the lock and its next write. Its session expires, and
// the second worker gets the lock and finishes the job. Then the first one goes on, and
// the database refuses its late write, because each transaction records the token of its
// holder with fence.InTx.
//
//	go -C examples/batch run .
//	go -C examples/batch run . -url zk://127.0.0.1:2181/batch
//	go -C examples/batch run . -unfenced
//
// The database is a SQLite file. On mem:// the workers are goroutines, and a pause freezes
// the worker's session; on a real ensemble they are processes, and SIGSTOP pauses one.
// With -unfenced the transactions record no tokens, and a customer gets two invoices.
//
// The exit status is 0 only if each customer has one invoice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	_ "github.com/zklock/go-zklock/zklock/zkdriver" // zk:// and zks://
)

const (
	customers = 5
	pausedAt  = 3 // the customer before whose invoice the first worker is paused
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if path, ok := os.LookupEnv(workerEnv); ok {
		err = workerProcess(ctx, path)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	url := flags.String("url", "mem://", "the ensemble: zk://host:port/root, or mem:// for one in memory")
	unfenced := flags.Bool("unfenced", false, "record no tokens, to see the harm that late writes do")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "zklock-batch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "shop.db")
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := createTables(ctx, db); err != nil {
		return err
	}
	workers := newStarter(*url, path, *unfenced)
	defer workers.close()
	if err := play(ctx, workers, out); err != nil {
		return err
	}
	return check(ctx, db, out)
}

// play lets the first worker fall behind and the second one finish the job.
func play(ctx context.Context, workers *starter, out io.Writer) error {
	first, err := workers.start(ctx)
	if err != nil {
		return err
	}
	defer first.end()
	reached := fmt.Sprintf("%s%d", writes, pausedAt)
	if last, err := first.follow(reached, "worker 1", out); err != nil || last != reached {
		return errors.Join(err, fmt.Errorf("worker 1 did not get to customer %d", pausedAt))
	}
	resume, err := first.pause()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "worker 1 is paused, and its session expires")
	second, err := workers.start(ctx)
	if err != nil {
		return errors.Join(err, resume())
	}
	defer second.end()
	last, err := second.follow(done, "worker 2", out)
	if err := errors.Join(err, resume()); err != nil || last != done {
		return errors.Join(err, errors.New("worker 2 did not finish the job"))
	}
	fmt.Fprintln(out, "worker 1 goes on")
	if err := first.goAhead(); err != nil {
		return err
	}
	last, err = first.follow("", "worker 1", out)
	if err == nil && !workers.unfenced && !strings.HasPrefix(last, refused) {
		err = errors.New("the late write of worker 1 was not refused")
	}
	return err
}
