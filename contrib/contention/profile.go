package contention

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Profile has the waits for locks since it was made, and the locks that are held now. Clients
// write it through its Hooks; several may use one Profile. It starts no goroutines and need not be
// closed. It is safe for concurrent use.
type Profile struct {
	class                        func(name string) string
	labels, callers, candidacies bool

	made  time.Time
	lines lines
	waits waits
	held  held
}

// New returns an empty Profile.
func New(opts ...Option) *Profile {
	p := &Profile{made: time.Now()}
	for _, o := range opts {
		if o != nil {
			o.apply(p)
		}
	}
	if p.class == nil {
		p.class = classOf
	}
	return p
}

// waitKey is the context key of a profile's wait.
type waitKey struct{ *Profile }

// Hooks returns hooks that write the profile. Pass them to zklock.WithHooks.
func (p *Profile) Hooks() zklock.Hooks {
	acquired := func(r zklock.AcquireResult) {
		if r.Lock != nil {
			p.held.add(r.Lock)
		}
	}
	h := zklock.Hooks{
		Acquire: func(_ context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			if e.Candidacy && !p.candidacies {
				return nil, nil
			}
			return nil, acquired
		},
		Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			if e.Candidacy && !p.candidacies {
				return nil, nil
			}
			one := &wait{class: clean(p.class(e.Name))}
			one.calls.capture()
			one.calls = p.lines.trim(&one.calls)
			p.waits.begin(one, p.holderOf(&e))
			return context.WithValue(ctx, waitKey{p}, one), func(zklock.WaitResult) { p.waits.end(one) }
		},
		Ahead: func(ctx context.Context, e zklock.WaitEvent) {
			if one, _ := ctx.Value(waitKey{p}).(*wait); one != nil {
				p.waits.goOn(one, p.holderOf(&e))
			}
		},
		Release: func(_ context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			p.held.remove(e.Lock, false)
			return nil, nil
		},
		Lost: func(_ context.Context, e zklock.LostEvent) { p.held.remove(e.Lock, true) },
	}
	if p.callers {
		h.Label = func(context.Context) string { return p.lines.label() }
	}
	return h
}
