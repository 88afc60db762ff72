package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// acquireAlone gets a request a place of its own, which is not handed over.
func (all *turnstiles) acquireAlone(ctx context.Context, r *request) (*Lock, error) {
	r.turnstile = nil
	defer all.stepAside(r)()
	left, err := all.take(ctx, r, nil)
	if left != nil {
		left.Remove()
	}
	return r.lock, err
}

// stepAside has the names that r is to write known as waited for, though not in
// their turnstiles, until the function it returns is called.
func (all *turnstiles) stepAside(r *request) func() {
	if r.Mode != queue.Exclusive {
		return func() {}
	}
	var aside []*turnstile
	all.mu.Lock()
	for _, w := range r.Wants {
		if w.Kind.Mode == queue.Exclusive {
			t := all.byPath[w.Path]
			t.aside.Add(1)
			aside = append(aside, t)
		}
	}
	all.mu.Unlock()
	return func() {
		for _, t := range aside {
			t.aside.Add(-1)
		}
	}
}
