// Package hook calls functions that may be nil.
package hook

import "context"

// Starter is the form of all hooks that start something. What it returns is called when
// that has ended, and may be nil.
type Starter[E, R any] = func(context.Context, E) (context.Context, func(R))

// End is what a Starter returned.
type End[R any] func(R)

// Start calls a Starter, which may be nil and may return nils.
func Start[E, R any](hook Starter[E, R], ctx context.Context, e E) (context.Context, End[R]) {
	if hook == nil {
		return ctx, nil
	}
	inner, end := hook(ctx, e)
	if inner == nil {
		inner = ctx
	}
	return inner, end
}

// Call calls it, unless it is nil.
func (end End[R]) Call(r R) {
	if end != nil {
		end(r)
	}
}
