package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// page is what the books contain about one order.
type page struct{ payments, items int64 }

// books are the database that both servers share. They also check the locks, and have
// their own mutex for that, because a check of a lock must not rely on the lock. The zero
// value is empty and ready for use.
type books struct {
	mu       sync.Mutex
	pages    map[string]page         // guarded by mu
	tokens   map[string]zklock.Token // guarded by mu; by order: of the last call that began
	inside   map[string]int          // guarded by mu; by order: calls at work now
	most     int                     // guarded by mu; the most calls that worked on one order at once
	unfenced int                     // guarded by mu; calls whose token was not greater than the last
}

// enter records that a call begins to work on an order. The call must run leave when it ends.
func (b *books) enter(ctx context.Context, order string) (leave func()) {
	var token zklock.Token
	if lock, ok := zklock.FromContext(ctx); ok {
		token = lock.Token()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == nil {
		b.pages, b.tokens, b.inside = make(map[string]page), make(map[string]zklock.Token), make(map[string]int)
	}
	if token.Compare(b.tokens[order]) <= 0 {
		b.unfenced++
	}
	b.tokens[order] = token
	b.inside[order]++
	b.most = max(b.most, b.inside[order])
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inside[order]--
	}
}

func (b *books) read(order string) page {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pages[order]
}

func (b *books) write(order string, p page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[order] = p
}

// summary prints the totals of the books. It returns an error if they differ from want,
// which is what the clients have done, or if the locks did not exclude.
func (b *books) summary(out io.Writer, want tally) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var got page
	for _, p := range b.pages {
		got.payments += p.payments
		got.items += p.items
	}
	fmt.Fprintln(out, "\nSummary")
	fmt.Fprintf(out, "  %d orders, at most %d call at once for each\n", len(b.pages), b.most)
	fmt.Fprintf(out, "  %d of %d payments and %d of %d items are in the books\n", got.payments, want.payments, got.items, want.items)
	for _, server := range slices.Sorted(maps.Keys(want.servers)) {
		fmt.Fprintf(out, "  %d calls were served by %s\n", want.servers[server], server)
	}
	var errs []error
	if b.most > 1 {
		errs = append(errs, fmt.Errorf("exclusion is broken: %d calls worked on one order at once", b.most))
	}
	if b.unfenced > 0 {
		errs = append(errs, fmt.Errorf("%d calls had no fencing token greater than the one before", b.unfenced))
	}
	if got != want.page {
		errs = append(errs, fmt.Errorf("updates were lost: the books have %+v, the clients made %+v", got, want.page))
	}
	return errors.Join(errs...)
}
