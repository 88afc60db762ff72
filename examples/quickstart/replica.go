package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// thinking is how long a replica takes between reading the number of tickets and
// writing the new one.
const thinking = 5 * time.Millisecond

// quiet keeps the log of a replica's client off the screen: the story shows what it would say.
var quiet = zklock.WithLogger(slog.New(slog.DiscardHandler))

// The orders that a replica carries out. An order is one line, and so is its answer.
const (
	sellWithoutLock = "sell"           // sell one ticket; answer "sold" or "none"
	sellWithLock    = "sell with lock" // the same while it holds the lock
	holdLock        = "hold"           // acquire the lock and read the number of tickets; answer the token
	writeLess       = "write"          // write one ticket less, and release; answer "accepted" or "refused"
)

// failed is the beginning of the answer if a replica could not carry out an order.
const failed = "failed: "

// replica is one instance of the shop's service, with a zklock client of its own.
type replica struct {
	shop   customerOf
	client *zklock.Client
	lock   *zklock.Lock // held between the orders holdLock and writeLess
	left   int          // the number of tickets that the order holdLock has read
}

// runReplica carries out the orders that it reads from in, until in ends.
func runReplica(ctx context.Context, client *zklock.Client, shop string, in io.Reader, out io.Writer) {
	if err := client.Ping(ctx); err != nil {
		fmt.Fprintln(out, failure(err))
		return
	}
	r := &replica{shop: customerOf(shop), client: client}
	fmt.Fprintln(out, "ready")
	for orders := bufio.NewScanner(in); orders.Scan(); {
		answer, err := r.obey(ctx, orders.Text())
		if err != nil {
			answer = failure(err)
		}
		fmt.Fprintln(out, answer)
	}
}

// failure is the answer for an error, in one line.
func failure(err error) string { return failed + strings.ReplaceAll(err.Error(), "\n", "; ") }

func (r *replica) obey(ctx context.Context, order string) (string, error) {
	switch order {
	case sellWithoutLock:
		return r.sell(ctx, nil)
	case sellWithLock:
		answer := ""
		err := zklock.Do(ctx, r.client.Mutex("tickets"), func(ctx context.Context, lock *zklock.Lock) (err error) {
			answer, err = r.sell(ctx, fence.Of(lock))
			return err
		})
		return answer, err
	case holdLock:
		return r.hold(ctx)
	case writeLess:
		return r.write(ctx)
	}
	return "", fmt.Errorf("unknown order %q", order)
}

// sell reads how many tickets are left, and writes one less. Two replicas that do this
// at the same time sell the same ticket.
func (r *replica) sell(ctx context.Context, tokens []fence.Sequencer) (string, error) {
	left, err := r.shop.left(ctx)
	if err != nil || left == 0 {
		return "none", err
	}
	if err := work(ctx, thinking); err != nil {
		return "", err
	}
	return "sold", r.shop.setLeft(ctx, left-1, tokens)
}

func (r *replica) hold(ctx context.Context) (string, error) {
	lock, err := r.client.Mutex("tickets").Acquire(ctx)
	if err != nil {
		return "", err
	}
	r.lock = lock
	r.left, err = r.shop.left(ctx)
	return lock.Token().String(), err
}

// write does not check first whether the lock is still held. Such a check would not help
// a process that is paused between the check and its write.
func (r *replica) write(ctx context.Context) (string, error) {
	answer := "accepted"
	err := r.shop.setLeft(ctx, r.left-1, fence.Of(r.lock))
	if errors.Is(err, fence.ErrStale) {
		answer, err = "refused", nil
	}
	if released := r.lock.Release(ctx); !errors.Is(released, zklock.ErrLost) {
		err = errors.Join(err, released)
	}
	return answer, err
}
