package zklock

import "context"

// observers are those of a client's hooks that turnstiles call, each nil if nobody
// listens. See Hooks.
type observers struct {
	wait     func(context.Context, WaitEvent) (context.Context, func(WaitResult))
	ahead    func(context.Context, WaitEvent)
	handover func(context.Context, HandoverEvent)
	release  func(context.Context, ReleaseEvent) (context.Context, func(ReleaseResult))
	lost     func(context.Context, LostEvent)
	inject   func(context.Context) string
}

func observersOf(h *Hooks) observers {
	return observers{wait: h.Wait, ahead: h.Ahead, handover: h.Handover, release: h.Release, lost: h.Lost, inject: h.Inject}
}
