// Package hook calls functions that may be nil.
package hook

import "context"

// Starter is the type of all hooks that are called when something starts. The function
// that it returns is called when that has ended, with the result; it may be nil.
type Starter[E, R any] = func(context.Context, E) (context.Context, func(R))

// End is the function that a Starter has returned. It may be nil.
type End[R any] func(R)

// Start calls a Starter, which may be nil and may return nils. The context that Start
// returns is never nil: it is ctx if the hook has returned none.
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

// Call calls the function if it is not nil.
func (end End[R]) Call(r R) {
	if end != nil {
		end(r)
	}
}
