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

// contend starts all contenders at the same time. Each is a goroutine that adds one to a
// plain int while it holds the lock. contend prints the holds in their order.
func contend(ctx context.Context, out io.Writer, how string, mutex func() *zklock.Mutex) result {
	var (
		wg      sync.WaitGroup
		holds   ledger
		counter int // guarded by the lock only
		errs    = make([]error, contenders)
	)
	for i := range contenders {
		wg.Go(func() {
			asked := time.Now()
			errs[i] = zklock.Do(ctx, mutex(), func(ctx context.Context, _ *zklock.Lock) error {
				return holds.record(ctx, i+1, asked, func() error {
					read := counter
					if err := work(ctx, holdTime); err != nil {
						return err
					}
					counter = read + 1 // without the lock, this would undo what others have added since
					return nil
				})
			})
		})
	}
	wg.Wait()

	fmt.Fprintf(out, "\n%d goroutines contend for one lock, %s\n\n", contenders, how)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "order\tcontender\tfencing token\twaited\theld\t")
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

// hold says when one contender held the lock, by its own record.
type hold struct {
	who               int
	token             zklock.Token
	asked, start, end time.Time
}

// ledger records holds. It has its own mutex, because a check of a lock must not rely on
// the lock.
type ledger struct {
	mu    sync.Mutex
	holds []hold // guarded by mu
}

// record calls fn while its caller holds the lock that ctx carries, and records the hold.
func (l *ledger) record(ctx context.Context, who int, asked time.Time, fn func() error) error {
	lock, ok := zklock.FromContext(ctx)
	if !ok {
		return errors.New("the context does not carry a lock")
	}
	h := hold{who: who, token: lock.Token(), asked: asked, start: time.Now()}
	err := fn()
	h.end = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
	return err
}

// inOrder returns the holds sorted by their start.
func (l *ledger) inOrder() []hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(slices.Values(l.holds), func(a, b hold) int { return a.start.Compare(b.start) })
}

// check returns an error if two holds of one lock overlap, or if a token is not greater
// than the one before. holds are sorted by their start.
func check(holds []hold) error {
	if most := mostAtOnce(holds); most > 1 {
		return fmt.Errorf("exclusion is broken: %d held the lock at once", most)
	}
	for i := 1; i < len(holds); i++ {
		if before, after := holds[i-1].token, holds[i].token; after.Compare(before) <= 0 {
			return fmt.Errorf("tokens do not increase: %v came after %v", after, before)
		}
	}
	return nil
}

// mostAtOnce returns the largest number of holds at one time. It looks only at the starts
// of holds, because the number grows only there.
func mostAtOnce(holds []hold) int {
	most := 0
	for _, h := range holds {
		most = max(most, len(insideAt(holds, h.start)))
	}
	return most
}

// insideAt returns the indices of the holds that were going on at time t.
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
