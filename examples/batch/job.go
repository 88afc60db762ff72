package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// The lines that a worker writes. It waits for an answer after each one that begins with
// writes, so that the play can pause it there. The others are its last ones.
const (
	holds   = "holds the lock, token "
	writes  = "writes the invoice of customer "
	refused = "is refused: "
	failed  = "has failed: "
	done    = "has done the rest"
)

// job writes the invoices that are missing, while it holds the lock.
type job struct {
	client   *zklock.Client
	db       *sql.DB
	unfenced bool
	in       *bufio.Scanner
	out      io.Writer
}

// runJob runs the job, and reports on out what it does and how it ended.
func runJob(ctx context.Context, client *zklock.Client, path string, unfenced bool, in io.Reader, out io.Writer) {
	db, err := openDatabase(path)
	if err == nil {
		defer db.Close()
		err = (&job{client: client, db: db, unfenced: unfenced, in: bufio.NewScanner(in), out: out}).run(ctx)
	}
	switch {
	case err == nil:
		fmt.Fprintln(out, done)
	case errors.Is(err, fence.ErrStale):
		fmt.Fprintln(out, refused+line(err))
	default:
		fmt.Fprintln(out, failed+line(err))
	}
}

// line returns an error's text in one line.
func line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (j *job) run(ctx context.Context) error {
	return zklock.Do(ctx, j.client.Mutex("invoices"), func(held context.Context, lock *zklock.Lock) error {
		fmt.Fprintf(j.out, "%s%v\n", holds, lock.Token())
		for {
			customer, err := next(held, j.db)
			if err != nil || customer == 0 {
				return err
			}
			if held.Err() != nil {
				return context.Cause(held)
			}
			fmt.Fprintf(j.out, "%s%d\n", writes, customer)
			if !j.in.Scan() {
				return io.ErrUnexpectedEOF
			}
			// A process may be paused here, after its last look at the lock. The
			// statements do not end with the lock, as if they were on their way.
			if err := j.write(context.WithoutCancel(held), customer, lock); err != nil {
				return err
			}
		}
	})
}
