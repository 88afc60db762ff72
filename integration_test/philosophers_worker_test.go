package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// forks is how many forks lie on the table.
const forks = 5

// forkReport is a report of a philosopher. Its What is takes, has, gives or gave for a fork, and failed for a
// take that has failed.
type forkReport struct {
	Label  string   // of the acquisition
	Fork   string   // its name
	Second bool     // it is taken while another fork is held
	Circle []string // failed: the labels of the waits in the circle, the failed one first; none if there was no deadlock
}

// philosophize takes two forks in random order, one while it holds the other, again and again for the task's
// time. It goes on until no fork is held.
func (w *worker) philosophize() error {
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), w.task.For+patience)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		return err
	}
	w.print(report{What: "ready"})
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the start: %w", err)
	}
	for end, i := time.Now().Add(w.task.For), 0; time.Now().Before(end); i += 2 {
		order := rand.Perm(forks)
		w.take(ctx, c, order[:2], fmt.Sprintf("%s-%d", w.task.Name, i), false)
		if err := pause(ctx, rand.N(30*time.Millisecond)); err != nil {
			return err
		}
	}
	return c.Close()
}

// take takes the first fork, and within that the others.
func (w *worker) take(ctx context.Context, c *zklock.Client, order []int, label string, second bool) {
	f := forkReport{Label: label, Fork: fmt.Sprint("fork", order[0]), Second: second}
	tell := func(what string, err error) {
		r := report{What: what, Fork: &f}
		if err != nil {
			r.Err = err.Error()
		}
		w.print(r)
	}
	tell("takes", nil)
	l, err := c.Mutex(f.Fork).Acquire(ctx, zklock.WithLabel(label))
	if err != nil {
		var d *zklock.DeadlockError
		if errors.As(err, &d) {
			for _, l := range d.Cycle {
				f.Circle = append(f.Circle, l.Label)
			}
		}
		tell("failed", err)
		return
	}
	tell("has", nil)
	_ = pause(ctx, rand.N(30*time.Millisecond))
	if len(order) > 1 {
		inner, cancel := l.Context(ctx)
		w.take(inner, c, order[1:], label+"b", true)
		cancel()
	}
	tell("gives", l.Err())
	err = l.Release(ctx)
	tell("gave", err)
}
