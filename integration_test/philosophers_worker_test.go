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
// take that has failed. A fork that was lost has an error when it is given.
type forkReport struct {
	Label  string   // of the acquisition
	Fork   string   // its name
	Second bool     // it is taken while another fork is held
	Circle []string // failed: the labels of the waits in the circle that the error names, in its order; none if it names none
}

// philosophize takes two forks in random order, one while it holds the other, again and again for the task's
// time. It goes on until no fork is held.
func (w *worker) philosophize() error {
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), w.task.For+2*patience)
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

// take takes the first fork, and within that the others. A wait for the second fork ends after some patience, so
// that the run ends, too, if no circle is broken.
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
	limited, stop := ctx, context.CancelFunc(func() {})
	if second {
		limited, stop = context.WithTimeout(ctx, patience)
	}
	l, err := c.Mutex(f.Fork).Acquire(limited, zklock.WithLabel(label))
	stop()
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
		w.take(inner, c, order[1:], secondOf(label), true)
		cancel()
	}
	tell("gives", l.Err())
	err = l.Release(ctx)
	tell("gave", err)
}

// secondOf is the label of the second take of a round.
func secondOf(label string) string { return label + "b" }
