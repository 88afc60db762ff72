package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

const (
	contenders = 50
	holdTime   = 2 * time.Millisecond
)

// contend lets all contenders add one to a plain int at the same time, each
// while it holds the lock, and prints who held it in what order.
func contend(ctx context.Context, out io.Writer, how string, mutex func() *zklock.Mutex) result {
	var (
		wg      sync.WaitGroup
		holds   ledger
		counter int // guarded by the lock, and by nothing else
		errs    = make([]error, contenders)
	)
	for i := range contenders {
		wg.Go(func() {
			asked := time.Now()
			errs[i] = zklock.Do(ctx, mutex(), func(ctx context.Context) error {
				return holds.record(ctx, i+1, asked, func() error {
					read := counter
					if err := work(ctx, holdTime); err != nil {
						return err
					}
					counter = read + 1 // undoes what anybody else added meanwhile
					return nil
				})
			})
		})
	}
	wg.Wait()

	fmt.Fprintf(out, "\n%d contenders for one lock, %s\n\n", contenders, how)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "order\tcontender\ttoken\twaited\theld\t")
	for i, h := range holds.inOrder() {
		fmt.Fprintf(w, "%d\t%d\t%v\t%s\t%s\t\n", i+1, h.who, h.token, ms(h.start.Sub(h.asked)), ms(h.end.Sub(h.start)))
	}
	w.Flush()

	err := errors.Join(summarize(errs), check(holds.inOrder()))
	if counter != contenders {
		err = errors.Join(err, fmt.Errorf("updates were lost: the counter is %d after %d additions", counter, contenders))
	}
	seen := fmt.Sprintf("%d contenders, %s: at most %d at once, counter %d", contenders, how, mostAtOnce(holds.inOrder()), counter)
	return result{seen, err}
}

// hold is one stay in a critical section, as seen from the inside.
type hold struct {
	who               int
	token             zklock.Token
	asked, start, end time.Time
}

// ledger records holds. It has a mutex of its own: what checks a lock must not
// rely on it.
type ledger struct {
	mu    sync.Mutex
	holds []hold // guarded by mu
}

// record calls fn, which holds the lock that ctx carries.
func (l *ledger) record(ctx context.Context, who int, asked time.Time, fn func() error) error {
	lock, ok := zklock.FromContext(ctx)
	if !ok {
		return errors.New("inside without a lock")
	}
	h := hold{who: who, token: lock.Token(), asked: asked, start: time.Now()}
	err := fn()
	h.end = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
	return err
}

// inOrder returns the holds in the order in which they began.
func (l *ledger) inOrder() []hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(slices.Values(l.holds), func(a, b hold) int { return a.start.Compare(b.start) })
}

// check looks at holds of one lock, in order, for what must not be: two at one
// time, or a token that is not above the one before.
func check(holds []hold) error {
	if most := mostAtOnce(holds); most > 1 {
		return fmt.Errorf("exclusion is broken: %d were inside at once", most)
	}
	for i := 1; i < len(holds); i++ {
		if before, after := holds[i-1].token, holds[i].token; after.Compare(before) <= 0 {
			return fmt.Errorf("tokens do not increase: %v came after %v", after, before)
		}
	}
	return nil
}

// mostAtOnce returns how many were inside at the busiest moment, which is when
// one of them came in.
func mostAtOnce(holds []hold) int {
	most := 0
	for _, h := range holds {
		most = max(most, len(insideAt(holds, h.start)))
	}
	return most
}

// insideAt returns the indices of the holds that an instant is part of.
func insideAt(holds []hold, t time.Time) []int {
	var inside []int
	for i, h := range holds {
		if !t.Before(h.start) && t.Before(h.end) {
			inside = append(inside, i)
		}
	}
	return inside
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
